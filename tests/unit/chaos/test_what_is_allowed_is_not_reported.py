"""Near misses: what at-least-once allows, what a fault explains, and what lies just on this side of a bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chaos.checker.verdict import check
from tests.chaos.checker.violation import Kind
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.near_misses import NEAR_MISSES
from tests.unit.chaos.run import clean_run
from tests.unit.chaos.script import Script


@pytest.mark.parametrize("play", [play for _, play in NEAR_MISSES], ids=[name for name, _ in NEAR_MISSES])
def test_it_passes(play: Callable[[Script], History]) -> None:
    verdict = check(play(clean_run()))
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    assert verdict.passed


def test_a_fault_long_after_the_answer_explains_nothing() -> None:
    script = clean_run()
    entry = taken(script)
    script.call(entry)
    script.wait(6_000)
    script.fault("kill", "processor-1")
    script.export(entry)
    assert check(script.history()).counts[Kind.FORGOTTEN] == 1
