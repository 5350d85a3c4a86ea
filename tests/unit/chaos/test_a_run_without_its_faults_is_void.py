"""A run says something only if its faults happened and somebody looked."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.verdict import check
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


def test_what_a_void_run_shows_all_the_same_is_told() -> None:
    script = clean_run()
    taken(script)
    script.fault("freeze", "sink-1", happened="")
    verdict = check(script.history())
    assert verdict.void
    assert len(verdict.violations) == 1
