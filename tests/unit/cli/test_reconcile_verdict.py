"""What `waitreg reconcile` takes for a kill."""

from __future__ import annotations

import pytest

from tests.support.command_line import parsed
from wait_registry.cli.main import main

GIVEN = ("reconcile", "--manifest", "m", "--calls", "c")


def test_kills_are_moments_in_ms_one_each() -> None:
    given = parsed([*GIVEN, "--kill", "1764000000000", "--kill", "1764000060000"])
    assert given.values["kills"] == (1764000000000, 1764000060000)


@pytest.mark.parametrize("text", ["1764000000", "-1", "now", "", "1764000000000000000"])
def test_a_kill_in_seconds_or_words_or_nanoseconds_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*GIVEN, "--kill", text]) == 2
    assert "--kill" in capsys.readouterr().err


def test_kills_and_none_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GIVEN, "--kill", "1764000000000", "--no-kills"]) == 2
    assert "exclude each other" in capsys.readouterr().err
