"""Which records of a partition may be deleted, and what forbids it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.prefix_cut import Bounds, Limit, Obstacle, Prefix, obstacle, prefix


@pytest.mark.parametrize(
    ("bounds", "before", "limit"),
    [
        (Bounds(first=0, recent=7, end=10, position=10), 7, Limit.TIME),
        (Bounds(first=3, recent=7, end=10, position=7), 7, Limit.TIME),
        (Bounds(first=0, recent=None, end=10, position=10), 10, Limit.END),
        (Bounds(first=0, recent=None, end=10, position=12), 10, Limit.END),
        (Bounds(first=0, recent=7, end=10, position=6), 6, Limit.POSITION),
        (Bounds(first=0, recent=None, end=10, position=9), 9, Limit.POSITION),
        (Bounds(first=3, recent=3, end=10, position=10), 3, Limit.TIME),
        (Bounds(first=3, recent=7, end=10, position=1), 3, Limit.POSITION),
        (Bounds(first=3, recent=7, end=10, position=None), 3, Limit.POSITION),
        (Bounds(first=0, recent=None, end=0, position=None), 0, Limit.END),
    ],
)
def test_a_prefix_ends_at_what_is_recent_or_not_read(bounds: Bounds, before: int, limit: Limit) -> None:
    assert prefix(bounds) == Prefix(bounds.first, before, limit)


offsets = st.integers(0, 20)


@given(st.builds(Bounds, offsets, st.none() | offsets, offsets, st.none() | offsets))
def test_no_prefix_has_what_is_recent_or_not_read(bounds: Bounds) -> None:
    asked = prefix(bounds)
    limits = [bounds.end, bounds.recent, bounds.first if bounds.position is None else bounds.position]
    assert all(offset < limit for offset in asked.offsets for limit in limits if limit is not None)
    assert all(offset >= bounds.first for offset in asked.offsets)


@pytest.mark.parametrize(
    ("first_open", "first_unknown", "found"),
    [
        (None, None, None),
        (5, None, None),
        (None, 6, None),
        (1, None, None),
        (4, None, (4, Obstacle.OPEN)),
        (2, 3, (2, Obstacle.OPEN)),
        (3, 2, (2, Obstacle.NOT_IN_TABLES)),
        (None, 4, (4, Obstacle.NOT_IN_TABLES)),
    ],
)
def test_an_open_or_unknown_record_forbids_a_prefix(
    first_open: int | None, first_unknown: int | None, found: tuple[int, Obstacle] | None
) -> None:
    assert obstacle(Prefix(2, 5, Limit.TIME), first_open, first_unknown) == found
