"""What remains of a batch: survivors, tombstones, and those that came late."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sink.condense.compaction import MAX_PACKED_PARTITION, OFFSET_BITS, compact
from sink.condense.late_outcomes import Entry, late_entries, late_outcomes
from sink.read.record_columns import OFFSET
from tests.unit.sink.batches import Row, batch_of
from wait_registry.records.tombstone import Outcome

IDS = [f"0193{index:04x}-0000-8000-8000-0000000000a{3 * index:x}" for index in range(6)]
OUTCOME = (("WAIT_OUTCOME", b"done"),)
EXPIRY = (("X", b"1"), ("WAIT_EXPIRATION_TIME", b"1970-01-01T00:00:05.000Z"))

# Ids that differ in their last digit, so that a batch that is worked on in parts has them in several.
assert len({one[-1] for one in IDS}) > 3
History = list[tuple[int, bool, bool]]
# Which id, whether it is a tombstone, and whether it stands where the id's records don't usually stand.
histories: st.SearchStrategy[History] = st.lists(
    st.tuples(st.sampled_from(range(len(IDS))), st.booleans(), st.sampled_from([False, False, False, True])),
    max_size=40,
)
undivided = st.sampled_from([0, 1_000])


def rows_of(history: History) -> list[Row]:
    return [
        Row(
            IDS[number].encode(),
            None if is_tombstone else b"v",
            partition=(number + strays) % 3,
            offset=offset,
            time_ms=1_000 + offset,
            headers=OUTCOME if is_tombstone else EXPIRY,
        )
        for offset, (number, is_tombstone, strays) in enumerate(history)
    ]


Story = tuple[bytes | None, int]


def stories_of(rows: list[Row]) -> dict[Story, list[Row]]:
    """Return the records of each key in each partition, which is what the log keeps apart."""
    stories: dict[Story, list[Row]] = {}
    for row in rows:
        stories.setdefault((row.key, row.partition), []).append(row)
    return stories


@pytest.mark.guarantee("P3.13", "P6.3")
@example([], 0, random.Random(0))
@given(histories, undivided, st.randoms(use_true_random=False))
def test_what_remains_is_as_if_read_record_by_record(history: History, at_once: int, shuffler: random.Random) -> None:
    rows = rows_of(history)
    stories = stories_of(rows)
    shuffler.shuffle(rows)
    compacted = compact(batch_of(rows), at_once)
    # The table has one row an id: where it is registered in two partitions, that of the one with the higher number.
    standing: dict[bytes | None, Row] = {}
    for (key, _), story in sorted(stories.items(), key=str):
        if story[-1].value is not None:
            standing[key] = story[-1]
    assert sorted(compacted.survivors[OFFSET].to_pylist()) == sorted(row.offset for row in standing.values())
    found = {(row["key"].encode(), row["partition"]): row for row in compacted.tombstones.to_pylist()}
    assert len(found) == compacted.tombstones.num_rows
    resolved = {place: story for place, story in stories.items() if any(row.value is None for row in story)}
    assert found.keys() == resolved.keys(), "every story with a tombstone, also where its wait is in the batch"
    for place, row in found.items():
        tombstones = [record for record in resolved[place] if record.value is None]
        assert row["last_offset"] == tombstones[-1].offset
        assert row["first_offset"] == tombstones[0].offset
        assert row["first_time_ms"] == tombstones[0].time_ms
        assert row["first_outcome"] == "done"
        assert row["first_is_tombstone"] == (resolved[place][0].value is None)


@given(histories, undivided)
def test_only_keys_with_a_longer_story_are_looked_at_one_by_one(history: History, at_once: int) -> None:
    rows = rows_of(history)
    stories = {place: [row.value is None for row in story] for place, story in stories_of(rows).items()}
    compacted = compact(batch_of(rows), at_once)
    plain = ([False], [True], [False, True])
    longer = {place for place, story in stories.items() if any(story) and story not in plain}
    looked_at = {(row["key"], row["partition"]) for row in compacted.entwined.to_pylist()}
    silent = {place for place, story in stories.items() if not any(story)}
    assert longer <= looked_at <= longer | silent, "and perhaps waits of such an id elsewhere, which say nothing"
    assert sum(len(stories[place]) for place in looked_at) == compacted.entwined.num_rows
    paired = {
        (row["key"].encode(), row["partition"])
        for row in compacted.tombstones.to_pylist()
        if row["wait_expires_ms"] is not None
    }
    assert paired == {place for place, story in stories.items() if story == [False, True]}


# The examples look like wait IDs.
@example(IDS[0].upper().encode())
@example(IDS[0].encode() + b"\n")
@example(b"\xff" * 36)
@example(b"{" + b"0" * 35)
@given(st.one_of(st.none(), st.binary(max_size=40), st.text(max_size=40).map(str.encode)))
def test_waits_and_tombstones_whose_key_is_no_wait_id_are_unkeyed(key: bytes | None) -> None:
    good = Row(IDS[0].encode(), b"v", 0, 0)
    compacted = compact(batch_of([good, Row(key, b"v", 0, 1), Row(key, None, 0, 2)]))
    assert compacted.unkeyed[OFFSET].to_pylist() == [1, 2]
    assert compacted.survivors[OFFSET].to_pylist() == [0]


def test_partitions_and_offsets_beyond_the_largest_are_refused() -> None:
    largest = Row(IDS[0].encode(), b"v", MAX_PACKED_PARTITION, (1 << OFFSET_BITS) - 1)
    assert compact(batch_of([largest])).survivors.num_rows == 1
    with pytest.raises(OverflowError):
        compact(batch_of([Row(IDS[0].encode(), b"v", 0, 1 << OFFSET_BITS)]))
    with pytest.raises(OverflowError):
        compact(batch_of([Row(IDS[0].encode(), b"v", MAX_PACKED_PARTITION + 1, 0)]))


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
