"""What the reconciliation prints adds up and decides the exit code."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from wait_registry.demo.breaches import Breach, Problem
from wait_registry.demo.reconciliation import Reconciliation
from wait_registry.demo.screen import Screen
from wait_registry.demo.verdict import equation, show_reconciliations

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


def test_a_kept_reconciliation_is_told_as_a_sum(screen: Screen, output: io.StringIO) -> None:
    assert show_reconciliations(screen, {"one": KEPT, "two": KEPT})
    assert "published 200 = done 160 + dead-lettered 40; lost 0, doubled 0" in output.getvalue()
    assert "every guarantee was kept" in output.getvalue()


@pytest.mark.parametrize("breach", Breach)
def test_what_each_breach_would_mean_stands_below_the_sum(breach: Breach, screen: Screen, output: io.StringIO) -> None:
    show_reconciliations(screen, {"one": KEPT})
    assert f"{breach}: " in output.getvalue().replace("\n" + " " * 9, " ")


def test_a_broken_one_names_the_record_and_the_run(screen: Screen, output: io.StringIO) -> None:
    assert not show_reconciliations(screen, {"fine": KEPT, "crash": BROKEN})
    assert "crash: lost: orders/0@7" in output.getvalue()
    assert "the reconciliation is broken" in output.getvalue()


def test_a_record_left_standing_is_no_success_either(screen: Screen) -> None:
    assert not show_reconciliations(screen, {"one": replace(KEPT, done=79, waiting=1)})


def test_what_was_not_looked_for_is_said_so_and_not_counted_as_none(screen: Screen, output: io.StringIO) -> None:
    unknown = replace(KEPT, not_looked_for=frozenset({Breach.FORGOTTEN}))
    assert show_reconciliations(screen, {"one": unknown})
    assert "forgotten not checked" in output.getvalue()
    assert "every guarantee that could be checked was kept" in output.getvalue()


def test_what_one_run_does_not_look_for_another_one_still_counts(screen: Screen, output: io.StringIO) -> None:
    seen = replace(KEPT, breaches={**KEPT.breaches, Breach.FORGOTTEN: 3})
    show_reconciliations(screen, {"one": seen, "two": replace(KEPT, not_looked_for=frozenset({Breach.FORGOTTEN}))})
    (row,) = (line.split() for line in output.getvalue().splitlines() if line.split()[:1] == ["forgotten"])
    assert row == ["forgotten", "3", "not", "checked", "3"]


def test_done_and_expired_is_explained_by_kills_only_where_they_are_known() -> None:
    both = replace(KEPT, done=79, done_and_dead_lettered=1, not_looked_for=frozenset({Breach.FORGOTTEN}))
    assert "both 1 (done and expired: correct only if a kill came" in equation({"one": both})


def test_records_no_longer_in_the_log_are_counted_and_are_no_success(screen: Screen, output: io.StringIO) -> None:
    gone = replace(KEPT, done=78, unjudged={Breach.LOST: 2, Breach.UNPAIRED: 1})
    assert not show_reconciliations(screen, {"one": gone})
    told = output.getvalue()
    assert "published 100 = done 78 + dead-lettered 20 + no longer in the log 2; lost 0 (+2?)" in told
    assert "unpaired 0 (+1?)" in told
    assert "no guarantee was broken, but the wait topic no longer has all the evidence" in told


def test_an_export_whose_wait_record_alone_is_gone_is_still_a_success(screen: Screen, output: io.StringIO) -> None:
    assert show_reconciliations(screen, {"one": replace(KEPT, unjudged={Breach.FALSELY_EXPORTED: 1})})
    assert "every guarantee that could be checked was kept" in output.getvalue()


def test_records_both_done_and_dead_lettered_are_said_to_be_so() -> None:
    assert "both 1 (killed between" in equation({"one": replace(KEPT, done=79, done_and_dead_lettered=1)})


def test_without_a_terminal_progress_is_a_plain_line(screen: Screen, output: io.StringIO) -> None:
    with screen.progress({"orders": 10}) as bars:
        bars.show({"orders": 4})
        bars.show({"orders": 4})
        bars.show({"orders": 10})
    assert output.getvalue() == "         orders 4/10\n         orders 10/10\n"
