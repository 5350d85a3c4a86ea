"""Each breach, planted into a run that keeps its promises, is found, and by no other rule than its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.checker.verdict import RULES, check
from tests.chaos.checker.violation import Kind
from tests.unit.chaos.breaches import BREACHES, Breach
from tests.unit.chaos.run import clean_run


def test_a_run_in_which_much_happens_and_nothing_is_broken_passes() -> None:
    verdict = check(clean_run().history())
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    assert (verdict.void, verdict.passed) == ("", True)


def test_tables_that_show_the_log_whenever_somebody_looks_pass() -> None:
    verdict = check(clean_run(views_at_looks=True).history())
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    assert verdict.passed
    assert verdict.figures["views"] > 50
    assert verdict.figures["rows_seen_standing"] > 50


@pytest.mark.parametrize("breach", BREACHES, ids=lambda breach: f"{breach.kind}: {breach.name}")
@settings(max_examples=4)
@given(data=st.data())
def test_what_is_planted_is_found_by_its_rule_alone(breach: Breach, data: st.DataObject) -> None:
    planted = breach.plant(clean_run(), lambda several: data.draw(st.sampled_from(several)))
    verdict = check(planted)
    found = {kind for kind, count in verdict.counts.items() if count}
    assert found == {breach.kind, *breach.beside}, [f"{one.kind}: {one.why}" for one in verdict.violations]
    assert not verdict.passed


def test_every_rule_has_a_breach_that_it_alone_finds() -> None:
    assert set(RULES) == set(Kind)
    assert {breach.kind for breach in BREACHES if not breach.beside} == set(Kind)
