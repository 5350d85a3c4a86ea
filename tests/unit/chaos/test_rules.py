"""Each planted breach is found by its own rules alone, and no near miss is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.chaos.checker.verdict import RULES, Verdict, check
from tests.chaos.checker.violation import Kind
from tests.unit.chaos.play import Planted, Play, planted
from tests.unit.chaos.script import clean_run

HISTORIES = list(planted())
BREACHES = [one for one in HISTORIES if one[0]]


def told(verdict: Verdict) -> Sequence[str]:
    return [f"{one.kind}: {one.why}" for one in verdict.violations]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: ": ".join(history)[:110])
def test_a_history_is_found_by_its_rules_alone(history: Planted) -> None:
    rules, _, steps = history
    verdict = check(Play().plant(steps))
    found = {kind for kind, count in verdict.counts.items() if count}
    assert found == {Kind(rule) for rule in rules.split()}, told(verdict)
    assert verdict.passed is not bool(rules)
    stories = verdict.stories(3)
    assert stories[0].startswith(told(verdict)[0]) if rules else stories == []


def test_every_rule_has_a_history_that_it_alone_finds() -> None:
    assert set(RULES) == set(Kind)
    assert {rules for rules, _, _ in BREACHES} >= set(Kind)


@pytest.mark.parametrize("views_at_looks", [False, True])
def test_a_run_in_which_much_happens_passes(views_at_looks: bool) -> None:
    verdict = check(clean_run(views_at_looks).history())
    assert told(verdict) == []
    assert (verdict.void, verdict.passed) == ("", True)
    assert not views_at_looks or min(verdict.figures["views"], verdict.figures["rows_seen_standing"]) > 50
