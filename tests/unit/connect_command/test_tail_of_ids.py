"""The tail alongside a Connect sink: it holds the IDs of due rows, and is confirmed by a second look."""

from __future__ import annotations

import pytest

from sweeper.tail import TailTooLong, Verdict
from wait_registry.cli.connect.sweeping import TailOfIds


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
