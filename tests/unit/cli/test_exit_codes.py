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


def _main_with(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    def run() -> int:
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(cli.waitreg, "get_command", lambda context, name: Command(name, callback=run))
    return cli.main(["broken"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("fix it"), 2),
        (FencedError("another sink is alive"), 3),
        (ReconciliationError("one record is lost"), 4),
        (TransientError("no answer"), 1),
        (PermanentError("refused"), 1),
        (DataError("unreadable"), 1),
        (WaitRegistryError("stopped"), 1),
    ],
)
def test_an_error_of_the_tree_is_one_line_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: WaitRegistryError, code: int
) -> None:
    assert _main_with(monkeypatch, error) == code
    assert capsys.readouterr().err == f"waitreg broken: {error}\n"


def test_the_cause_is_named_when_the_message_leaves_it_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = TransientError("Kafka gave no answer")
    error.__cause__ = OSError("connection refused")
    assert _main_with(monkeypatch, error) == 1
    assert capsys.readouterr().err == ("waitreg broken: Kafka gave no answer (because: OSError: connection refused)\n")


def test_anything_unforeseen_is_shown_in_full_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main_with(monkeypatch, ZeroDivisionError("by accident")) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "ZeroDivisionError: by accident" in shown


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main_with(monkeypatch, KeyboardInterrupt()) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_done_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _main_with(monkeypatch, None) == 0
