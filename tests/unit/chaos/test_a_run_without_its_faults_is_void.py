"""A run says something only if its faults happened and somebody looked."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.verdict import check
from tests.chaos.history.history import FaultDone
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.run import clean_run


def test_a_fault_without_proof_makes_the_run_void_and_neither_passed_nor_failed() -> None:
    script = clean_run()
    script.fault("freeze", "sink-1", happened="")
    verdict = check(script.history())
    assert verdict.void == "no proof that the fault freeze of sink-1 happened"
    assert (verdict.passed, verdict.violations) == (False, [])


def test_a_run_that_nobody_watched_or_that_had_no_load_is_void() -> None:
    history = clean_run().history()
    assert "looked" in check(replace(history, looks=[])).void
    assert "published" in check(replace(history, published=[], calls=[])).void


def test_a_run_whose_tables_were_hardly_seen_is_void_and_one_that_wasnt_to_see_them_is_not() -> None:
    script = clean_run()
    history = script.history()
    assert check(replace(history, views=None)).passed
    few = [script.view(), script.view()]
    assert "tables were seen 2 times" in check(replace(history, views=few)).void
    assert check(replace(history, views=[*few, script.view()])).passed


def test_what_a_void_run_shows_all_the_same_is_told() -> None:
    script = clean_run()
    taken(script)
    script.fault("freeze", "sink-1", happened="")
    verdict = check(script.history())
    assert verdict.void
    assert len(verdict.violations) == 1


def test_a_run_is_void_that_nobody_watched_for_long_while_its_broker_was_there() -> None:
    script = clean_run()
    script.wait(40_000)
    script.done(script.publish())
    history = script.history()
    last_ms = history.looks[-1].ended_ms
    seldom = [look for look in history.looks if not last_ms - 30_000 < look.began_ms < last_ms - 5_000]
    assert "nobody looked" in check(replace(history, looks=seldom)).void
    one_only = replace(history, looks=history.looks[:1])
    assert "nobody looked" in check(one_only).void
    away = FaultDone("freeze", "broker", last_ms - 30_000, last_ms - 10_000, "state T")
    assert check(replace(history, looks=seldom, faults=[*history.faults, away])).passed
