"""Late completion: which tombstones of a batch came after their registration had been resolved or had expired."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink.apply.compaction import compact
from sink.apply.late_outcomes import Entry, late_entries, late_outcomes
from tests.unit.sink.batches import Row, batch_of
from wait_registry.records.tombstone import Outcome

ID = "01930000-0000-8000-8000-0000000000ab"


def wait(offset: int, expires_at_ms: int | None = 10_000) -> Entry:
    return Entry(offset, offset, is_tombstone=False, expires_at_ms=expires_at_ms)


def tombstone(offset: int, time_ms: int = 0, by_processor: bool = True) -> Entry:
    return Entry(offset, time_ms, is_tombstone=True, outcome=Outcome.DONE if by_processor else Outcome.EXPIRED)


def test_a_tombstone_after_a_tombstone_is_late_of_either_writer() -> None:
    late = list(late_entries([wait(1), tombstone(2), tombstone(3, by_processor=False), wait(4), tombstone(5)]))
    assert [entry.offset for entry in late] == [3]


def test_a_processors_tombstone_after_the_expiry_is_late_not_a_sweepers() -> None:
    assert [entry.offset for entry in late_entries([wait(1), tombstone(2, time_ms=10_001)])] == [2]
    assert list(late_entries([wait(1), tombstone(2, time_ms=10_000)])) == []
    assert list(late_entries([wait(1), tombstone(2, time_ms=10_001, by_processor=False)])) == []
    assert list(late_entries([wait(1, expires_at_ms=None), tombstone(2, time_ms=10_001)])) == []


def test_the_first_tombstone_of_a_batch_is_left_to_the_table() -> None:
    assert list(late_entries([tombstone(1, time_ms=99_999)])) == []


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 20)), max_size=12))
def test_a_batch_gives_what_the_entries_give(story: list[tuple[bool, bool, int]]) -> None:
    entries, rows = [], []
    for offset, (is_tombstone, by_processor, time_s) in enumerate(story):
        if is_tombstone:
            entries.append(tombstone(offset, time_s * 1000, by_processor))
            headers = (("WAIT_OUTCOME", b"done" if by_processor else b"expired"),)
        else:
            entries.append(wait(offset, 10_000))
            headers = (("WAIT_EXPIRATION_TIME", b"1970-01-01T00:00:10.000Z"),)
        rows.append(Row(ID.encode(), None if is_tombstone else b"", 2, offset, time_s * 1000, headers))
    compacted = compact(batch_of(rows[::-1]))
    found = [(item.wait_id, item.partition, item.offset, item.outcome) for item in late_outcomes(compacted.entwined)]
    expected = [(ID, 2, entry.offset, entry.outcome) for entry in late_entries(entries)]
    if len(compacted.entwined):
        assert found == expected
    else:  # a single record, or a wait and its tombstone: the table's business
        assert len(rows) <= 2 or not any(entry.is_tombstone for entry in entries)
