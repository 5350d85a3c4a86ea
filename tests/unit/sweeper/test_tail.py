"""View plus tail is the exact truth: whatever the history, wherever the view stops (P3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.tail import Tail, TailTooLong, Verdict

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
def test_a_row_is_open_exactly_when_the_whole_log_says_so(
    history: list[tuple[str, bool]], position: int, keep: list[bool]
) -> None:
    view: dict[str, int] = {}
    for offset, (wait_id, is_wait) in enumerate(history[:position]):
        view.pop(wait_id, None)
        if is_wait:
            view[wait_id] = offset
    tail = Tail(position, 100)
    for offset, wait_id, _ in compacted(history, keep):
        if offset >= position:
            tail.add(wait_id.encode(), offset)

    last = {wait_id: (offset, is_wait) for offset, (wait_id, is_wait) in enumerate(history)}
    for wait_id, wait_offset in view.items():
        truth = Verdict.OPEN if last[wait_id] == (wait_offset, True) else Verdict.SUPERSEDED
        assert tail.verdict(wait_id, wait_offset) is truth


@given(HISTORIES, st.lists(st.booleans(), min_size=1, max_size=7))
def test_without_a_position_only_a_row_that_the_log_itself_shows_last_is_open(
    history: list[tuple[str, bool]], keep: list[bool]
) -> None:
    """The view may then claim anything: rows resolved long ago, rows that never were."""
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


def test_finished_ids_take_no_room_until_the_next_ones_are_finished() -> None:
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


def test_ids_that_nobody_asks_about_take_no_room() -> None:
    tail = Tail(0, 2, only=["a", "b"])
    for offset, key in enumerate((b"a", b"x", b"y", b"b", b"z", b"a")):
        tail.add(key, offset)
    assert (tail.verdict("a", 0), tail.verdict("b", 3)) == (Verdict.SUPERSEDED, Verdict.OPEN)
    with pytest.raises(TailTooLong, match="more than 2 rows are due"):
        Tail(0, 2, only=["a", "b", "c"])


def test_what_a_second_reading_does_not_find_again_is_unseen() -> None:
    tail = Tail(5, 10, only=["gone", "kept", "young"])
    for offset, key in ((5, b"gone"), (6, b"kept"), (20, b"young")):
        tail.add(key, offset)
    again = tail.begin_again()
    again.add(b"kept", 6)
    tail.confirm(again, 10)
    verdicts = [tail.verdict("gone", 5), tail.verdict("kept", 6), tail.verdict("young", 20)]
    assert verdicts == [Verdict.UNSEEN, Verdict.OPEN, Verdict.OPEN]


@pytest.mark.guarantee("P7.11")
def test_keys_that_are_no_ids_are_not_held() -> None:
    tail = Tail(0, 1)
    for offset in range(10):
        tail.add(b"%d" % offset * 40, offset)
    tail.add(b"018bcfe5-6800-8000-8000-000000000001", 10)
    assert tail.verdict("018bcfe5-6800-8000-8000-000000000001", 9) is Verdict.SUPERSEDED
