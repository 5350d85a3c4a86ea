"""Each planted violation is found by its own rule alone, and an eventful run in which nothing is wrong passes."""

from __future__ import annotations

import pytest

from tests.chaos.checker.verdict import RULES, check
from tests.unit.chaos.play import Play, planted

HISTORIES = list(planted())


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: ": ".join(history)[:110])
def test_planted_history_is_found_by_its_rule_alone(history: tuple[str, str, str]) -> None:
    rule, _, steps = history
    verdict = check(Play().plant(steps))
    found = [f"{one.rule}: {one.why}" for one in verdict.violations]
    assert set(verdict.counts) == set(filter(None, [rule])), found
    assert verdict.stories(1)[0].startswith(found[0]) if rule else verdict.passed


def test_every_rule_has_a_history_that_it_alone_finds() -> None:
    assert {rule for rule, _, _ in HISTORIES} == {*RULES, ""}


@pytest.mark.parametrize("snapshots_at_polls", [False, True])
def test_eventful_clean_run_passes(snapshots_at_polls: bool) -> None:
    verdict = check(Play(snapshots_at_polls=snapshots_at_polls).history())
    assert verdict.passed, [verdict.void, *verdict.stories()]
