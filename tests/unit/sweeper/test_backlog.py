"""The number of series is bounded, and so is what a reading costs Postgres."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.backlog import OTHERS, bounded
from sweeper.counting_thread import pause_after

COUNTS = st.dictionaries(st.tuples(st.text("ab", max_size=2), st.text("ab", max_size=2)), st.integers(0, 9).map(float))


@given(COUNTS, st.integers(0, 12))
def test_the_largest_counts_are_kept_and_nothing_is_lost(counts: dict[tuple[str, ...], float], most: int) -> None:
    found = dict(bounded(counts.items(), float.__add__, most))
    kept = {labels: count for labels, count in found.items() if labels != (OTHERS, OTHERS)}
    assert len(kept) == min(most, len(counts))
    assert kept.items() <= counts.items()
    assert sum(found.values()) == sum(counts.values())
    smallest = min(kept.values(), default=0)
    assert all(count <= smallest for labels, count in counts.items() if labels not in kept) or not kept


def test_ages_are_merged_to_the_largest() -> None:
    ages = {("a",): 5.0, ("b",): 3.0, ("c",): 2.0}
    assert dict(bounded(ages.items(), max, 1)) == {("a",): 5.0, (OTHERS,): 3.0}


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, 30.0), (1.5, 30.0), (3.0, 60.0), (60.0, 1200.0)])
def test_a_reading_that_takes_long_is_repeated_later(took_s: float, pause_s: float) -> None:
    assert pause_after(took_s) == pause_s
