"""What the reconciliation prints adds up and decides the exit code; what it takes for a kill."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.support.command_line import parsed
from wait_registry.cli.main import main
from wait_registry.demo.breaches import Breach, Problem
from wait_registry.demo.reconciliation import Reconciliation
from wait_registry.demo.screen import Screen
from wait_registry.demo.verdict import show_reconciliations

KEPT = Reconciliation(100, 80, 20, 0, 0, 0, 0, 0, dict.fromkeys(Breach, 0), ())
BROKEN = replace(
    KEPT, done=79, lost=1, breaches={**KEPT.breaches, Breach.LOST: 1}, problems=(Problem(Breach.LOST, "orders/0@7"),)
)


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(output: io.StringIO) -> Screen:
    return Screen(Console(file=output, width=120))


UNKNOWN_KILLS = replace(KEPT, not_looked_for=frozenset({Breach.FORGOTTEN}))


@pytest.mark.parametrize(
    ("results", "kept", "shown"),
    [
        pytest.param(
            {"one": KEPT, "two": KEPT},
            True,
            ["published 200 = done 160 + dead-lettered 40; lost 0, doubled 0", "every guarantee was kept"],
            id="kept",
        ),
        pytest.param({"fine": KEPT, "crash": BROKEN}, False, ["crash: lost: orders/0@7", "is broken"], id="broken"),
        pytest.param({"one": replace(KEPT, done=79, waiting=1)}, False, ["still waiting 1"], id="a record still waits"),
        pytest.param(
            {"one": UNKNOWN_KILLS},
            True,
            ["forgotten not checked", "that could be checked was kept"],
            id="kills unknown",
        ),
        pytest.param(
            {"one": replace(KEPT, done=79, done_and_dead_lettered=1)}, True, ["20 + both (crash) 1;"], id="both"
        ),
    ],
)
def test_the_verdict_shows_what_was_kept(
    results: dict[str, Reconciliation], kept: bool, shown: list[str], screen: Screen, output: io.StringIO
) -> None:
    assert show_reconciliations(screen, results) is kept
    assert [text for text in shown if text not in output.getvalue()] == []


@pytest.mark.parametrize("breach", Breach)
def test_the_meaning_of_each_breach_is_below_the_sum(breach: Breach, screen: Screen, output: io.StringIO) -> None:
    show_reconciliations(screen, {"one": KEPT})
    assert f"{breach}: " in output.getvalue().replace("\n" + " " * 9, " ")


def test_a_breach_that_one_run_does_not_check_still_counts_in_another(screen: Screen, output: io.StringIO) -> None:
    seen = replace(KEPT, breaches={**KEPT.breaches, Breach.FORGOTTEN: 3})
    show_reconciliations(screen, {"one": seen, "two": UNKNOWN_KILLS})
    (row,) = (line.split() for line in output.getvalue().splitlines() if line.split()[:1] == ["forgotten"])
    assert row == ["forgotten", "3", "not", "checked", "3"]


def test_without_a_terminal_progress_is_shown_at_its_end(screen: Screen, output: io.StringIO) -> None:
    with screen.progress({"orders": 10}) as show:
        show({"orders": 4})
        assert output.getvalue() == ""
        show({"orders": 10}, note="all of them")
    assert "10/10" in output.getvalue() and "all of them" in output.getvalue()


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
