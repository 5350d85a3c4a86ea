"""What `waitreg reconcile` takes for a kill, and with which exit code it ends when not every guarantee was kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import parsed
from wait_registry.cli.main import main
from wait_registry.cli.reconcile import unproven
from wait_registry.demo.breaches import Breach
from wait_registry.demo.reconciliation import Reconciliation

MANIFEST = Path("published.jsonl")
KEPT = Reconciliation(100, 80, 20, 0, 0, 0, 0, 0, dict.fromkeys(Breach, 0), ())
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


@pytest.mark.parametrize("breach", [Breach.LOST, Breach.UNPAIRED])
def test_evidence_older_than_the_log_ends_with_2_and_what_to_do(breach: Breach) -> None:
    error = unproven(replace(KEPT, unjudged={breach: 3}), MANIFEST)
    assert error.exit_code == 2
    assert "3" in str(error) and "Start again with another input topic and another manifest" in str(error)


@pytest.mark.parametrize(
    "broken", [replace(KEPT, breaches={**KEPT.breaches, Breach.DOUBLED: 1}), replace(KEPT, done=79, waiting=1)]
)
def test_a_broken_guarantee_ends_with_4_even_if_some_are_unjudged(broken: Reconciliation) -> None:
    assert unproven(replace(broken, unjudged={Breach.LOST: 1}), MANIFEST).exit_code == 4
