"""Tables plus tail are the exact state, whatever the history, wherever the tables end, and whose they are (P3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.connect_policy import TailOfIds
from sweeper.tail import Position, PositionOvertaken, Tail, TailTooLong, Verdict, require_not_overtaken

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY_MS = 86_400_000
IDS = ["a", "b", "c", "d"]
# An entry of the log: an id and whether it is a wait record or a tombstone.
HISTORIES = st.lists(st.tuples(st.sampled_from(IDS), st.booleans()), max_size=40)


def compacted(history: list[tuple[str, bool]], keep: list[bool]) -> list[tuple[int, str, bool]]:
    """Drop some of the entries that a later one of their id covers, as compaction may."""
    last = {wait_id: offset for offset, (wait_id, _) in enumerate(history)}
    return [
        (offset, wait_id, is_wait)
        for offset, (wait_id, is_wait) in enumerate(history)
        if last[wait_id] == offset or keep[offset % len(keep)]
    ]


@given(HISTORIES, st.integers(0, 40), st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_row_is_open_exactly_as_in_the_log(history: list[tuple[str, bool]], position: int, keep: list[bool]) -> None:
    rows: dict[str, int] = {}
    for offset, (wait_id, is_wait) in enumerate(history[:position]):
        rows.pop(wait_id, None)
        if is_wait:
            rows[wait_id] = offset
    tail = Tail(position, 100)
    for offset, wait_id, _ in compacted(history, keep):
        if offset >= position:
            tail.add(wait_id.encode(), offset)
    last = {wait_id: (offset, is_wait) for offset, (wait_id, is_wait) in enumerate(history)}
    for wait_id, wait_offset in rows.items():
        truth = Verdict.OPEN if last[wait_id] == (wait_offset, True) else Verdict.SUPERSEDED
        assert tail.verdict(wait_id, wait_offset) is truth


@given(HISTORIES, st.lists(st.booleans(), min_size=1, max_size=7))
def test_without_a_position_only_the_last_in_the_log_is_open(history: list[tuple[str, bool]], keep: list[bool]) -> None:
    """The tables may then hold anything: rows resolved long ago, rows that never were."""
    tail = Tail(0, 100)
    for offset, wait_id, _ in compacted(history, keep):
        tail.add(wait_id.encode(), offset)
    last = {wait_id: offset for offset, (wait_id, _) in enumerate(history)}
    for claimed in range(len(history) + 1):
        for wait_id in IDS:
            is_open = tail.verdict(wait_id, claimed) is Verdict.OPEN
            assert is_open == (last.get(wait_id) == claimed)


@pytest.mark.guarantee("P3.5")
def test_a_row_that_the_log_should_show_and_does_not_is_unseen() -> None:
    tail = Tail(10, 100)
    tail.add(b"other", 12)
    assert tail.verdict("a", 11) is Verdict.UNSEEN
    assert tail.verdict("a", 9) is Verdict.OPEN


def test_ignored_ids_take_no_room_until_the_next_ones_are_ignored() -> None:
    tail = Tail(0, 2)
    tail.ignore(["a", "b", "c"])
    for offset, key in enumerate((b"a", b"b", b"c", b"x", b"y")):
        tail.add(key, offset)
    assert tail.verdict("x", 2) is Verdict.SUPERSEDED
    tail.ignore([])
    with pytest.raises(TailTooLong, match="max_tail_records"):
        tail.add(b"a", 5)


def test_an_id_that_comes_again_takes_room_once() -> None:
    tail = Tail(0, 1)
    for offset in range(10):
        tail.add(b"a", offset)
    assert tail.verdict("a", 8) is Verdict.SUPERSEDED


def test_a_record_without_a_key_says_nothing() -> None:
    tail = Tail(5, 1)
    tail.add(None, 6)
    assert tail.verdict("a", 4) is Verdict.OPEN


@pytest.mark.guarantee("P7.11")
def test_keys_that_are_no_ids_are_not_held() -> None:
    tail = Tail(0, 1)
    for offset in range(10):
        tail.add(b"%d" % offset * 40, offset)
    tail.add(b"018bcfe5-6800-8000-8000-000000000001", 10)
    assert tail.verdict("018bcfe5-6800-8000-8000-000000000001", 9) is Verdict.SUPERSEDED


@given(
    st.timedeltas(timedelta(-1), timedelta(days=400)),
    st.integers(1, 400 * DAY_MS),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_exactly_old_positions_are_refused(age: timedelta, retention_ms: int, next_offset: int, unread: int) -> None:
    position = Position(next_offset, NOW - age)
    refused = unread > 0 and age / timedelta(milliseconds=1) > retention_ms / 2
    try:
        require_not_overtaken(position, next_offset + unread, NOW, retention_ms)
    except PositionOvertaken:
        assert refused
    else:
        assert not refused


def test_the_message_names_position_age_limit_and_fix() -> None:
    wanted = r"position 7 of the tables is 1 day, 0:00:00 old.*12:00:00.*waitreg rebuild"
    with pytest.raises(PositionOvertaken, match=wanted):
        require_not_overtaken(Position(7, NOW - timedelta(days=1)), 8, NOW, DAY_MS)


def test_only_ids_of_due_rows_are_held() -> None:
    tail = TailOfIds(0, 2, ["a", "b"])
    for offset, key in enumerate((b"a", b"x", None, b"b", b"z", b"a")):
        tail.add(key, offset)
    assert (tail.verdict("a", 0), tail.verdict("b", 3)) == (Verdict.SUPERSEDED, Verdict.OPEN)
    with pytest.raises(TailTooLong, match="more than 2 rows are due"):
        TailOfIds(0, 2, ["a", "b", "c"])


def test_an_entry_that_a_second_look_does_not_find_is_unseen() -> None:
    tail = TailOfIds(5, 10, ["gone", "kept", "young"])
    for offset, key in ((5, b"gone"), (6, b"kept"), (20, b"young")):
        tail.add(key, offset)
    again = tail.empty()
    again.add(b"kept", 6)
    tail.confirm(again, 10)
    verdicts = [tail.verdict("gone", 5), tail.verdict("kept", 6), tail.verdict("young", 20)]
    assert verdicts == [Verdict.UNSEEN, Verdict.OPEN, Verdict.OPEN]


def test_the_last_old_record_of_any_id_bounds_the_second_look() -> None:
    tail = TailOfIds(5, 10, ["a"], old_before_ms=1_000)
    assert tail.old_end == 5
    for offset, key, timestamp_ms in ((6, b"a", 999), (7, b"x", 998), (8, b"a", 1_000)):
        tail.add(key, offset, timestamp_ms)
    assert tail.old_end == 8
