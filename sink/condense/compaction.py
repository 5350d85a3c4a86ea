"""What is left of a batch: the last record of every key in its partition, and every key that had a tombstone there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sink.condense.header_values import header_values, times_ms
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TIME_MS, VALUE
from wait_registry.records.header_names import WAIT_EXPIRATION_TIME, WAIT_OUTCOME

# One int64 orders the records of a key and marks tombstones: partition, offset, is-null. A partition number has up to
# 17 bits, an offset up to 46 (a million records a second for two years), which `require_packable` checks.
OFFSET_BITS = 46
PARTITION_SHIFT = OFFSET_BITS + 1
MAX_PACKED_PARTITION = (1 << (63 - PARTITION_SHIFT)) - 1

# A larger batch is worked on in parts: to group records takes several times what they have in keys and headers.
UNDIVIDED_RECORDS: Final = 50_000
# A part has the keys that end in one of these digits; a wait ID is as good as random there.
PARTS: Final = ("0123", "4567", "89ab", "cdef")
LAST_DIGIT: Final = 35

CANONICAL_ID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A batch of the wait topic after compaction; a *story* is what it has of one key in one partition.

    ``survivors`` are the wait records that are the last of their story, one of an id. ``tombstones`` has one row for
    *every* story with a tombstone, also where its wait record came in the same batch, since a duplicate of that one may
    have come in an earlier batch: key, partition, last_offset (of the last tombstone), first_offset, first_time_ms,
    first_outcome (of the first), first_is_tombstone (the story begins with one), wait_expires_ms (where it is exactly a
    wait and then its tombstone). ``unkeyed`` are records whose key is no wait ID. ``entwined`` are all records of
    stories with a tombstone that are longer: repeated waits or tombstones.
    """

    survivors: pa.Table
    tombstones: pa.Table
    unkeyed: pa.Table
    entwined: pa.Table


def compact(batch: pa.Table, undivided_records: int = UNDIVIDED_RECORDS) -> Compacted:
    """Compact a batch of the wait topic (columns of `sink.read.record_columns`), in any order of records.

    Partition and offset order the records. A key's records are in one partition, except where other producers have been
    (docs/decisions/0014): the log keeps one story in each partition then, and so do we. The table has one row an id; of
    two open registrations it gets one.

    Args:
        batch: the records.
        undivided_records: a batch with more is worked on in parts, which comes to the same.

    Raises:
        OverflowError: as `require_packable`.
    """
    require_packable(batch)
    keyed, unkeyed = _divided(batch)
    parts = [_compacted(part) for part in _parts(keyed, undivided_records)]
    return Compacted(
        survivors=pa.concat_tables(survivors for survivors, _, _ in parts),
        tombstones=pa.concat_tables(tombstones for _, tombstones, _ in parts),
        unkeyed=unkeyed,
        entwined=pa.concat_tables(entwined for _, _, entwined in parts),
    )


def _parts(keyed: pa.Table, undivided_records: int) -> Iterator[pa.Table]:
    """Divide records, all of a key in one part."""
    if keyed.num_rows <= undivided_records:
        yield keyed
        return
    last = pc.binary_slice(keyed[KEY], LAST_DIGIT, LAST_DIGIT + 1)
    for digits in PARTS:
        yield keyed.filter(pc.is_in(last, pa.array([digit.encode() for digit in digits], keyed[KEY].type)))


def _compacted(keyed: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return survivors, tombstones and entwined records of `Compacted`."""
    packed = pack(keyed)
    groups = _groups(keyed, packed)
    with_tombstone = groups.filter(pc.greater(groups["tombstones_sum"], 0))
    return (
        keyed.filter(pc.is_in(packed, _open(groups))),
        _tombstones(keyed, packed, with_tombstone),
        _entwined(keyed, packed, with_tombstone),
    )


def _open(groups: pa.Table) -> pa.ChunkedArray:
    """Return the places of waits that are the last of their story, one of an id."""
    open_groups = groups.filter(pc.equal(pc.bit_wise_and(groups["packed_max"], 1), 0))
    if pc.count_distinct(open_groups["key"]).as_py() == open_groups.num_rows:
        return open_groups["packed_max"]
    return open_groups.group_by("key", use_threads=False).aggregate([("packed_max", "max")])["packed_max_max"]


def pack(batch: pa.Table) -> pa.ChunkedArray:
    """Return partition << 47 | offset << 1 | is-null for each record."""
    partition = pc.shift_left(pc.cast(batch[PARTITION], pa.int64()), PARTITION_SHIFT)
    offset = pc.shift_left(batch[OFFSET], 1)
    return pc.bit_wise_or(pc.bit_wise_or(partition, offset), _is_tombstone(batch))


def require_packable(batch: pa.Table) -> None:
    """Raise OverflowError for a partition or offset beyond what one int64 can hold together."""
    bounds = pc.min_max(batch[PARTITION]).as_py(), pc.min_max(batch[OFFSET]).as_py()
    if batch.num_rows and (bounds[0]["max"] > MAX_PACKED_PARTITION or bounds[1]["max"] >= 1 << OFFSET_BITS):
        raise OverflowError(
            f"partition {bounds[0]['max']} or offset {bounds[1]['max']} is beyond what compaction can order "
            f"(partition {MAX_PACKED_PARTITION}, offset 2^{OFFSET_BITS})"
        )


def _divided(batch: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the records whose key has the form of a wait ID, and the others."""
    is_keyed = pc.fill_null(pc.match_substring_regex(_ascii(batch[KEY]), CANONICAL_ID), False)
    # To filter is to copy: hardly ever does a batch need it.
    if pc.all(is_keyed).as_py():
        return batch, batch.schema.empty_table()
    return batch.filter(is_keyed), batch.filter(pc.invert(is_keyed))


def _ascii(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys of 36 bytes as they are, null for any other: what isn't UTF-8 needs no decoding to be refused."""
    plausible = pc.equal(pc.binary_length(keys), 36)
    return pc.if_else(plausible, keys, pa.scalar(None, pa.binary()))


def _is_tombstone(batch: pa.Table) -> pa.ChunkedArray:
    return pc.cast(pc.is_null(batch[VALUE]), pa.int64())


def _groups(keyed: pa.Table, packed: pa.ChunkedArray) -> pa.Table:
    is_tombstone = _is_tombstone(keyed)
    columns: dict[str, Any] = {
        "key": keyed[KEY],
        "partition": keyed[PARTITION],
        "packed": packed,
        "tombstones": is_tombstone,
        "tombstone": pc.if_else(pc.equal(is_tombstone, 1), packed, pa.scalar(None, pa.int64())),
    }
    aggregates = [
        ("packed", "min"),
        ("packed", "max"),
        ("packed", "count"),
        ("tombstones", "sum"),
        ("tombstone", "min"),
        ("tombstone", "max"),
    ]
    return pa.table(columns).group_by(["key", "partition"], use_threads=False).aggregate(aggregates)


def _tombstones(keyed: pa.Table, packed: pa.ChunkedArray, groups: pa.Table) -> pa.Table:
    place = packed.combine_chunks()
    first = pc.index_in(groups["tombstone_min"], place)
    paired_wait = pc.if_else(_is_pair(groups), groups["packed_min"], pa.scalar(None, pa.int64()))
    wait = pc.index_in(paired_wait, place, skip_nulls=True)
    # Of all records, since taking whole headers of some would copy them.
    outcomes, expiry_times = header_values(keyed[HEADERS], WAIT_OUTCOME, WAIT_EXPIRATION_TIME)
    return pa.table(
        {
            "key": pc.cast(groups["key"], pa.string()),
            "partition": groups["partition"],
            "last_offset": _offset(groups["tombstone_max"]),
            "first_offset": _offset(groups["tombstone_min"]),
            "first_time_ms": keyed[TIME_MS].take(first),
            "first_outcome": outcomes.take(first),
            "first_is_tombstone": pc.equal(groups["tombstone_min"], groups["packed_min"]),
            "wait_expires_ms": times_ms(expiry_times.take(wait.combine_chunks())),
        }
    )


def _is_pair(groups: pa.Table) -> pa.ChunkedArray:
    """Mark the stories that are a wait and then its tombstone, as nearly all are."""
    one_of_two = pc.and_(pc.equal(groups["packed_count"], 2), pc.equal(groups["tombstones_sum"], 1))
    return pc.and_(one_of_two, pc.equal(groups["tombstone_max"], groups["packed_max"]))


def _entwined(keyed: pa.Table, packed: pa.ChunkedArray, groups: pa.Table) -> pa.Table:
    plain = pc.or_(pc.equal(groups["packed_count"], 1), _is_pair(groups))
    keys = groups["key"].filter(pc.invert(plain))
    elsewhere = groups.filter(pc.and_(plain, pc.is_in(groups["key"], keys)))
    # A plain story has no more than these two records; it may be of a key whose story elsewhere is longer.
    others = pa.chunked_array([*elsewhere["packed_min"].chunks, *elsewhere["packed_max"].chunks], pa.int64())
    return keyed.filter(pc.and_(pc.is_in(keyed[KEY], keys), pc.invert(pc.is_in(packed, others))))


def _offset(packed: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.bit_wise_and(pc.shift_right(packed, 1), (1 << OFFSET_BITS) - 1)
