"""A view older than half of delete.retention.ms is refused, unless it was the log's end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.position import Position, PositionTooOld, require_young

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY_MS = 86_400_000


@given(
    st.timedeltas(timedelta(-1), timedelta(days=400)),
    st.integers(1, 400 * DAY_MS),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_exactly_old_positions_before_the_end_are_refused(
    age: timedelta, retention_ms: int, next_offset: int, unread: int
) -> None:
    position = Position(next_offset, NOW - age)
    refused = unread > 0 and age / timedelta(milliseconds=1) > retention_ms / 2
    try:
        require_young(position, next_offset + unread, NOW, retention_ms)
    except PositionTooOld:
        assert refused
    else:
        assert not refused


def test_the_message_says_what_was_seen_and_the_way_on() -> None:
    with pytest.raises(PositionTooOld, match=r"position 7 is 1 day, 0:00:00 old.*12:00:00.*waitreg rebuild"):
        require_young(Position(7, NOW - timedelta(days=1)), 8, NOW, DAY_MS)
