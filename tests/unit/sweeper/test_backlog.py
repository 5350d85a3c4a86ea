"""The backlog's series and what a reading costs are bounded; marks are kept as long as the operations topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.backlog import OTHERS, bounded
from sweeper.counting_thread import pause_after
from sweeper.housekeeping import marks_days
from wait_registry.settings.redrive import OperationsSettings
from wait_registry.settings.root import Settings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DAY_MS

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


@pytest.mark.parametrize(
    ("retention_ms", "retention_days", "days"),
    [(400 * DAY_MS, 30, 401), (10 * DAY_MS + 1, 30, 30), (40 * DAY_MS + 1, 30, 41), (-1, 30, None)],
)
def test_marks_are_kept_as_long_as_the_operations_topic_keeps_them(
    retention_ms: int, retention_days: int, days: int | None
) -> None:
    settings = Settings(
        operations=OperationsSettings(retention_ms=retention_ms), sweeper=SweeperSettings(retention_days=retention_days)
    )
    assert marks_days(settings) == days
