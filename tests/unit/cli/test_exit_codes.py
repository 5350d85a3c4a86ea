"""How an error becomes an exit code and what is printed of it."""

from __future__ import annotations

import pytest

from wait_registry.cli import main as cli
from wait_registry.cli.command import Command
from wait_registry.errors import (
    ConfigurationError,
    DataError,
    FencedError,
    PermanentError,
    ReconciliationError,
    TransientError,
    WaitRegistryError,
)

CAUSED = TransientError("Kafka gave no answer")
CAUSED.__cause__ = OSError("connection refused")


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (None, 0, ""),
        (ConfigurationError("fix it"), 2, "waitreg broken: fix it\n"),
        (FencedError("another sink is alive"), 3, "waitreg broken: another sink is alive\n"),
        (ReconciliationError("one record is lost"), 4, "waitreg broken: one record is lost\n"),
        (TransientError("no answer"), 1, "waitreg broken: no answer\n"),
        (PermanentError("refused"), 1, "waitreg broken: refused\n"),
        (DataError("unreadable"), 1, "waitreg broken: unreadable\n"),
        (WaitRegistryError("stopped"), 1, "waitreg broken: stopped\n"),
        (CAUSED, 1, "waitreg broken: Kafka gave no answer (because: OSError: connection refused)\n"),
        (KeyboardInterrupt(), 130, "waitreg broken: interrupted\n"),
        (ZeroDivisionError("by accident"), 1, "Traceback (most recent call last):\n"),
    ],
    ids=repr,
)
def test_an_error_becomes_an_exit_code_and_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    code: int,
    shown: str,
) -> None:
    def run() -> int:
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(cli.waitreg, "get_command", lambda context, name: Command(name, callback=run))
    assert cli.main(["broken"]) == code
    errors = capsys.readouterr().err
    if isinstance(error, ZeroDivisionError):  # anything unforeseen is shown in full
        assert errors.startswith(shown) and errors.endswith("ZeroDivisionError: by accident\n")
    else:
        assert errors == shown
