"""Which records were settled, and how: tombstones of the wait topic with what their registrations say of them.

Pure functions on Arrow tables. The rows don't depend on where one run ends and the next one begins.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sink.condense.compaction import CANONICAL_ID
from sink.condense.header_values import as_text, header_bytes, header_values
from sink.position import SHOWABLE_MS
from sink.read.record_columns import EXPRESSIONS, HEADERS, KEY, OFFSET, PARTITION, TIME_MS, VALUE, Columns
from wait_registry.records import header_names

ORIGINAL_KEY: Final = header_names.ORIGINAL_KEY
# Headers of a wait record whose text becomes a column.
_TEXTS: Final = {
    "consumer_group": header_names.WAIT_GROUP,
    "topic": header_names.ORIGINAL_TOPIC,
    "idempotency_key": header_names.WAIT_IDEMPOTENCY_KEY,
    "instance": header_names.WAIT_INSTANCE,
}
_NUMBERS: Final = {
    "offset": header_names.ORIGINAL_OFFSET,
    "record_time_ms": header_names.ORIGINAL_TIMESTAMP,
    "delivery": header_names.WAIT_DELIVERY,
}
_WANTED: Final = (
    *_TEXTS.values(),
    *_NUMBERS.values(),
    header_names.ORIGINAL_PARTITION,
    header_names.LEGACY_PARTITION,
    header_names.WAIT_OUTCOME,
)
# Up to 18 digits, which an int64 holds.
_INTEGER: Final = "^-?[0-9]{1,18}$"

# An entry of the wait topic; what only a registration has is null in a tombstone, and the other way round.
ENTRIES: Final = pa.schema(
    [
        ("wait_id", pa.string()),
        ("wait_partition", pa.int32()),
        ("wait_offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("is_tombstone", pa.bool_()),
        ("outcome", pa.string()),
        ("consumer_group", pa.string()),
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("record_time_ms", pa.int64()),
        ("delivery", pa.int64()),
        ("idempotency_key", pa.string()),
        ("instance", pa.string()),
    ]
)
_TIME: Final = pa.timestamp("ms", "UTC")
# A row of the history: one per tombstone.
ROWS: Final = pa.schema(
    [
        ("wait_id", pa.string()),
        ("outcome", pa.string()),
        ("settled_at", _TIME),
        ("consumer_group", pa.string()),
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("record_time", _TIME),
        ("delivery", pa.int64()),
        ("idempotency_key", pa.string()),
        ("instance", pa.string()),
        ("registered_at", _TIME),
        ("wait_partition", pa.int32()),
        ("wait_offset", pa.int64()),
    ]
)


class Settled(NamedTuple):
    """The rows of records that were settled, and the entries of registrations that are still open."""

    rows: pa.Table
    open: pa.Table


def columns(*, with_keys: bool) -> Columns:
    """Return what to select of Spark's Kafka source: no values, and of the headers only those that are needed.

    Args:
        with_keys: read the keys of the original records, too.
    """
    names = (*_WANTED, ORIGINAL_KEY) if with_keys else _WANTED
    listed = ", ".join(f"'{name}'" for name in names)
    narrow = {
        VALUE: f"if({VALUE} is null, cast(null as binary), X'') as {VALUE}",
        HEADERS: f"filter({HEADERS}, header -> header.key in ({listed})) as {HEADERS}",
    }
    return Columns(tuple(narrow.get(expression, expression) for expression in EXPRESSIONS))


def entries(batch: pa.Table) -> pa.Table:
    """Return the entries of a batch (columns of `sink.read.record_columns`); records without a wait ID are skipped."""
    keys = as_text(batch[KEY].combine_chunks())
    is_entry = pc.fill_null(pc.match_substring_regex(keys, CANONICAL_ID), False)
    headers = batch[HEADERS]

    def text(name: str) -> pa.Array:
        [found] = header_values(headers, name)
        return found

    def number(name: str) -> pa.Array:
        return _integers(text(name))

    partition = pc.coalesce(number(header_names.ORIGINAL_PARTITION), number(header_names.LEGACY_PARTITION))
    found: dict[str, Any] = {
        "wait_id": keys,
        "wait_partition": batch[PARTITION],
        "wait_offset": batch[OFFSET],
        "time_ms": batch[TIME_MS],
        "is_tombstone": pc.is_null(batch[VALUE]),
        "outcome": text(header_names.WAIT_OUTCOME),
        "key": header_bytes(headers, ORIGINAL_KEY)[0],
        "partition": partition,
        **{column: text(name) for column, name in _TEXTS.items()},
        **{column: number(name) for column, name in _NUMBERS.items()},
    }
    return pa.table([found[name] for name in ENTRIES.names], schema=ENTRIES).filter(is_entry)


def settle(opened: pa.Table, read: pa.Table) -> Settled:
    """Match tombstones with the registrations that they settle.

    A tombstone settles the last registration of its wait ID before it in its partition, if no other tombstone is
    between them. Without one, all that the row has is the wait ID, the outcome and the time: compaction has removed the
    registration before it was read, or another tombstone came first.

    Args:
        opened: entries of the registrations that were open before.
        read: the entries that follow, in any order.
    """
    concerned = pc.is_in(opened["wait_id"], read["wait_id"].combine_chunks())
    story = pa.concat_tables([opened.filter(concerned), read]).combine_chunks()
    story = story.sort_by([(name, "ascending") for name in ("wait_id", "wait_partition", "wait_offset")])
    follows = _follows_its_own(story)
    is_tombstone = story["is_tombstone"].combine_chunks()
    # A registration that something follows is settled, or was renewed.
    is_last = pc.invert(pa.concat_arrays([follows[1:], pa.array([False])])[: len(follows)])
    still_open = pa.concat_tables(
        [opened.filter(pc.invert(concerned)), story.filter(pc.and_(is_last, pc.invert(is_tombstone)))]
    )
    before = pa.array(range(-1, story.num_rows - 1), pa.int64())
    is_settling = pc.and_(follows, pc.invert(_shifted(is_tombstone)))
    registration = story.take(pc.if_else(is_settling, before, None).filter(is_tombstone))
    return Settled(_rows(story.filter(is_tombstone), registration), still_open)


def _follows_its_own(story: pa.Table) -> pa.Array:
    """Mark the entries before which another one of the same wait ID and partition is."""
    same = [
        pc.equal(column[1:], column[:-1])
        for column in (story["wait_id"].combine_chunks(), story["wait_partition"].combine_chunks())
    ]
    return pa.concat_arrays([pa.array([False]), pc.and_(*same)])[: story.num_rows]


def _shifted(marks: pa.Array) -> pa.Array:
    return pa.concat_arrays([pa.array([False]), marks[:-1]])[: len(marks)]


def _rows(tombstones: pa.Table, registrations: pa.Table) -> pa.Table:
    found: dict[str, Any] = {
        **{name: registrations[name] for name in ENTRIES.names},
        **{name: tombstones[name] for name in ("wait_id", "outcome", "wait_partition", "wait_offset")},
        "settled_at": _times(tombstones["time_ms"]),
        "registered_at": _times(registrations["time_ms"]),
        "record_time": _times(registrations["record_time_ms"]),
    }
    return pa.table([found[name] for name in ROWS.names], schema=ROWS)


def _times(time_ms: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times, null for no timestamp (-1) and for what lies outside of the years 1 to 9999."""
    is_shown = pc.and_(pc.greater_equal(time_ms, SHOWABLE_MS[0]), pc.less_equal(time_ms, SHOWABLE_MS[-1]))
    return pc.cast(pc.if_else(pc.and_(is_shown, pc.not_equal(time_ms, -1)), time_ms, None), _TIME)


def _integers(texts: pa.Array) -> pa.Array:
    is_integer = pc.fill_null(pc.match_substring_regex(texts, _INTEGER), False)
    return pc.cast(pc.if_else(is_integer, texts, pa.scalar(None, pa.string())), pa.int64())
