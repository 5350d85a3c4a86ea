"""Surviving wait records as rows of the table ``wait``; what can't be read goes to quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa

from sink.apply.copy_binary import Column, int4, int8, jsonb, text, time_ms
from sink.apply.quarantine import Quarantined, quarantined
from sink.position import SHOWABLE_MS
from sink.read.batch import HEADERS, KEY, OFFSET, PARTITION, VALUE, records_of
from wait_registry.errors import DataError
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.wait_record import WaitRecord, decode_wait_record

Encoding = Callable[[pa.Array], pa.Array]
Earlier: TypeAlias = Callable[[bytes, int, int], Iterable[dict[str, Any]]]

# Python objects exist of at most as many records at once, some 10 kB each.
RECORDS_AT_ONCE: Final = 5_000

# Name, Arrow type and encoding of each column, in the order of `_values`.
COLUMNS: Final[tuple[tuple[str, pa.DataType, Encoding], ...]] = (
    ("wait_expiration_uuid", pa.string(), text),
    ("original_topic", pa.string(), text),
    ("original_partition", pa.int32(), int4),
    ("original_offset", pa.int64(), int8),
    ("original_key", pa.binary(), text),
    ("original_timestamp", pa.int64(), time_ms),
    ("original_timestamp_ms", pa.int64(), int8),
    ("original_timestamp_type", pa.string(), text),
    ("original_headers", pa.binary(), jsonb),
    ("wait_expiration_time", pa.int64(), time_ms),
    ("body", pa.binary(), text),
    ("consumer_group", pa.string(), text),
    ("instance", pa.string(), text),
    ("delivery", pa.int32(), int4),
    ("dead_letter_topic", pa.string(), text),
    ("expiry_policy", pa.string(), text),
    ("max_deliveries", pa.int32(), int4),
    ("wait_topic", pa.string(), text),
    ("wait_partition", pa.int32(), int4),
    ("wait_offset", pa.int64(), int8),
    ("source_topic", pa.string(), text),
    ("source_partition", pa.int32(), int4),
    ("source_offset", pa.int64(), int8),
    ("traceparent", pa.string(), text),
    ("tracestate", pa.string(), text),
)


@dataclass(frozen=True, slots=True)
class WaitRows:
    """The rows of one batch, with the records that could not be read."""

    columns: list[Column]
    unreadable: list[Quarantined]

    @property
    def count(self) -> int:
        return len(self.columns[0].values)


def wait_rows(topic: str, survivors: pa.Table, earlier: Earlier, records_at_once: int = RECORDS_AT_ONCE) -> WaitRows:
    """Read surviving wait records; nothing here raises for bad data.

    Args:
        topic: the wait topic.
        survivors: records (columns of `sink.read.batch`).
        earlier: returns, newest first, the wait records of a key in this batch, in its partition and below an offset,
            that nothing but unreadable ones came after: if the last can't be read, the registration before it counts.
        records_at_once: bounds the memory that the reading takes.
    """
    parts = [
        _read(topic, survivors.slice(start, records_at_once), earlier)
        for start in range(0, survivors.num_rows, records_at_once)
    ]
    columns = [
        Column(name, encode, pa.concat_arrays([pa.nulls(0, kind), *(part.columns[index].values for part in parts)]))
        for index, (name, kind, encode) in enumerate(COLUMNS)
    ]
    return WaitRows(columns, [record for part in parts for record in part.unreadable])


def _read(topic: str, survivors: pa.Table, earlier: Earlier) -> WaitRows:
    rows: list[tuple[Any, ...]] = []
    unreadable: list[Quarantined] = []
    for survivor in records_of(survivors):
        for record in chain([survivor], _before(survivor, earlier)):
            decoded = _decoded(record)
            if isinstance(decoded, WaitRecord):
                rows.append(_values(topic, record, decoded))
                break
            unreadable.append(quarantined(topic, record, decoded))
    transposed = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    columns = [
        Column(name, encode, pa.array(values, kind))
        for (name, kind, encode), values in zip(COLUMNS, transposed, strict=True)
    ]
    return WaitRows(columns, unreadable)


def showable_ms(moment_ms: int | None) -> int | None:
    """Return a time that a timestamptz can show, None for any other (no timestamp is -1)."""
    return moment_ms if moment_ms is not None and moment_ms != -1 and moment_ms in SHOWABLE_MS else None


def _before(survivor: dict[str, Any], earlier: Earlier) -> Iterable[dict[str, Any]]:
    # A generator, so that nothing is looked for where the survivor can be read.
    yield from earlier(survivor[KEY], survivor[PARTITION], survivor[OFFSET])


def _decoded(record: dict[str, Any]) -> WaitRecord | str:
    try:
        decoded = decode_wait_record(record[KEY], record[VALUE], record[HEADERS])
    except DataError as error:
        return str(error)
    return decoded if decoded.expires_at_ms in SHOWABLE_MS else "the expiry time is outside of the years 1 to 9999"


def _values(topic: str, record: dict[str, Any], decoded: WaitRecord) -> tuple[Any, ...]:
    original, source = decoded.original, decoded.source
    return (
        decoded.wait_id,
        original.topic,
        original.partition,
        original.offset,
        original.key,
        showable_ms(original.timestamp_ms),
        original.timestamp_ms,
        original.timestamp_type,
        encode_headers_json(original.headers),
        decoded.expires_at_ms,
        original.value,
        decoded.group,
        decoded.instance,
        decoded.delivery,
        decoded.dead_letter_topic,
        decoded.expiry_policy,
        decoded.max_deliveries,
        topic,
        record[PARTITION],
        record[OFFSET],
        source.topic if source else None,
        source.partition if source else None,
        source.offset if source else None,
        decoded.traceparent,
        decoded.tracestate,
    )
