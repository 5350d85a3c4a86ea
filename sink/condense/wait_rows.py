"""Surviving wait records as rows of the table ``wait``; those that can't be decoded go to quarantine.

Nearly all are decoded by columns (`sink.condense.wait_columns`), the others here, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sink.condense.quarantined import Quarantined, quarantined
from sink.condense.wait_columns import PlainWaits
from sink.position import SHOWABLE_MS
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TOPIC, VALUE, records_of
from wait_registry.errors import DataError
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.wait_record import WaitRecord, decode_wait_record

# Columns that are attributes of the wait record: the type of each, and where it is.
ATTRIBUTES: Final = {
    "wait_expiration_uuid": ("text", "wait_id"),
    "original_topic": ("text", "original.topic"),
    "original_partition": ("int4", "original.partition"),
    "original_offset": ("int8", "original.offset"),
    "original_key": ("bytea", "original.key"),
    "original_timestamp_ms": ("int8", "original.timestamp_ms"),
    "original_timestamp_type": ("text", "original.timestamp_type"),
    "body": ("bytea", "original.value"),
    "consumer_group": ("text", "group"),
    "instance": ("text", "instance"),
    "delivery": ("int4", "delivery"),
    "dead_letter_topic": ("text", "dead_letter_topic"),
    "expiry_policy": ("text", "expiry_policy"),
    "max_deliveries": ("int4", "max_deliveries"),
    "redeliver_to": ("text", "redeliver_to"),
    "traceparent": ("text", "traceparent"),
    "tracestate": ("text", "tracestate"),
}
# Name and type of each column, in the order of `_values`.
COLUMNS: Final = {
    **{column: kind for column, (kind, _) in ATTRIBUTES.items()},
    "original_timestamp": "timestamptz",
    "original_headers": "jsonb",
    "wait_expiration_time": "timestamptz",
    "idempotency_key": "text",
    "wait_topic": "text",
    "wait_partition": "int4",
    "wait_offset": "int8",
    "source_topic": "text",
    "source_partition": "int4",
    "source_offset": "int8",
}
# Records that are decoded by columns at once, some 10 MB.
WAITS_AT_ONCE: Final = 20_000
# A kernel call costs as much as a record: fewer records are decoded faster one by one.
BY_COLUMNS_FROM: Final = 500
_attributes = attrgetter(*(place for _, place in ATTRIBUTES.values()))


# Arrow's types of them: times are ms since the epoch.
_ARROW: Final = {
    "text": pa.string(),
    "bytea": pa.binary(),
    "jsonb": pa.binary(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "timestamptz": pa.int64(),
}
SCHEMA: Final = pa.schema([(column, _ARROW[kind]) for column, kind in COLUMNS.items()])


def wait_rows(
    survivors: pa.Table, earlier: EarlierWaits, unreadable: list[Quarantined], by_columns_from: int = BY_COLUMNS_FROM
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of surviving wait records (`COLUMNS`, of which some are dictionaries); bad data raises nothing.

    Args:
        survivors: records (columns of `sink.read.record_columns`), whose keys are wait IDs.
        earlier: of the whole batch: if the last registration of a key can't be decoded, the one before it counts.
        unreadable: receives the records that can't be decoded.
        by_columns_from: fewer records are decoded one by one, which comes to the same.
    """
    for start in range(0, survivors.num_rows, WAITS_AT_ONCE):
        others = survivors.slice(start, WAITS_AT_ONCE)
        if others.num_rows >= by_columns_from:
            [part] = others.combine_chunks().to_batches()
            waits = PlainWaits(part)
            yield pa.RecordBatch.from_pydict({column: waits.columns[column] for column in COLUMNS}).filter(
                waits.is_plain
            )
            others = pa.Table.from_batches([part]).filter(pc.invert(waits.is_plain))
        values = list(one_by_one(others, earlier, unreadable))
        yield pa.RecordBatch.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in values], SCHEMA)


def one_by_one(survivors: pa.Table, earlier: EarlierWaits, unreadable: list[Quarantined]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `COLUMNS` for each record that can be decoded; arguments as `wait_rows`."""
    for survivor in records_of(survivors):
        for record in chain([survivor], earlier.before(survivor[KEY], survivor[PARTITION], survivor[OFFSET])):
            decoded = _decoded(record)
            if isinstance(decoded, WaitRecord):
                yield _values(record, decoded)
                break
            unreadable.append(quarantined(record, decoded))


class EarlierWaits:
    """Looks back in a batch, which is scanned once, for the first record that can't be decoded."""

    def __init__(self, batch: pa.Table) -> None:
        self._batch = batch

    def before(self, key: bytes, partition: int, offset: int) -> Iterator[dict[str, Any]]:
        """Yield the wait records of a key below an offset, newest first, up to the tombstone that ends them."""
        rows = self._rows.get((key, partition))
        if rows is None:
            return
        for record in records_of(self.repeated.take(rows)):
            if record[OFFSET] >= offset:
                continue
            if record[VALUE] is None:
                return
            yield record

    @cached_property
    def repeated(self) -> pa.Table:
        """The records of keys that have more than one, newest first: only these have something before them."""
        counts = self._batch.select([KEY]).group_by(KEY).aggregate([(KEY, "count")])
        keys = counts.filter(pc.greater(counts[f"{KEY}_count"], 1))[KEY]
        return self._batch.filter(pc.is_in(self._batch[KEY], keys)).sort_by([(OFFSET, "descending")])

    @cached_property
    def _rows(self) -> dict[tuple[bytes, int], list[int]]:
        rows: dict[tuple[bytes, int], list[int]] = {}
        places = zip(self.repeated[KEY].to_pylist(), self.repeated[PARTITION].to_pylist(), strict=True)
        for row, place in enumerate(places):
            rows.setdefault(place, []).append(row)
        return rows


def _decoded(record: dict[str, Any]) -> WaitRecord | str:
    try:
        decoded = decode_wait_record(record[KEY], record[VALUE], record[HEADERS])
    except DataError as error:
        return str(error)
    return decoded if decoded.expires_at_ms in SHOWABLE_MS else "the expiry time is outside of the years 1 to 9999"


def _values(record: dict[str, Any], decoded: WaitRecord) -> tuple[Any, ...]:
    return (
        *_attributes(decoded),
        _shown(decoded.original.timestamp_ms),
        encode_headers_json(decoded.original.headers),
        decoded.expires_at_ms,
        decoded.idempotency_key or decoded.wait_id,
        record[TOPIC],
        record[PARTITION],
        record[OFFSET],
        *(decoded.source or (None, None, None)),
    )


def _shown(time_ms: int | None) -> int | None:
    """Return a time that a timestamptz can show, None for others and for no timestamp (-1)."""
    return time_ms if time_ms is not None and time_ms != -1 and time_ms in SHOWABLE_MS else None
