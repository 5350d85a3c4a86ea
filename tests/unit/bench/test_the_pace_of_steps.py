"""How fast somebody is who moves in large steps, once warm."""

from __future__ import annotations

import pytest

from bench.contenders.percentile import percentile
from bench.contenders.progress_steps import Step, pace, warm

STEPS = [
    Step(0, 0),
    Step(10, 2_000, 4),
    Step(12, 40_000, 5),
    Step(13, 60_000, 6),
    Step(15, 99_000, 9),
    Step(16, 100_000),
]


def test_only_what_lies_within_the_stretch_counts() -> None:
    found = pace(STEPS, warm(100_000), 99_500)
    assert (found.records, found.seconds) == (59_000, 3)
    assert found.records_per_s == pytest.approx(59_000 / 3)
    assert found.cpu_us_per_record == pytest.approx(4 / 59_000 * 1e6)


def test_with_fewer_than_two_steps_within_it_is_all_that_was_seen() -> None:
    found = pace(STEPS, 60_001, 98_999)
    assert (found.records, found.seconds) == (100_000, 16)


@pytest.mark.parametrize("steps", [[], STEPS[:1]])
def test_without_a_step_there_is_no_pace(steps: list[Step]) -> None:
    with pytest.raises(ValueError, match="expected two"):
        pace(steps, 0, 100)


@pytest.mark.parametrize(("share", "value"), [(0.01, 1), (0.5, 10), (0.95, 19), (1.0, 20)])
def test_a_percentile_is_a_value_that_was_seen(share: float, value: int) -> None:
    assert percentile(reversed(range(1, 21)), share) == value
