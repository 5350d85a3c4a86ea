"""Surviving wait records as rows of the table ``wait``; those that can't be decoded go to quarantine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.json import Jsonb

from sink.apply.quarantine import Quarantined, quarantined
from sink.position import SHOWABLE_MS, moment, showable
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TOPIC, VALUE, records_of
from wait_registry.errors import DataError
from wait_registry.records.headers import Headers, encode_headers_json
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
_attributes = attrgetter(*(place for _, place in ATTRIBUTES.values()))


def wait_rows(survivors: pa.Table, earlier: EarlierWaits, unreadable: list[Quarantined]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of surviving wait records; nothing here raises for bad data.

    Args:
        survivors: records (columns of `sink.read.record_columns`).
        earlier: of the whole batch: if the last registration of a key can't be decoded, the one before it counts.
        unreadable: receives the records that can't be decoded.
    """
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


def headers_value(headers: Headers) -> Jsonb:
    """Return headers as a value of a jsonb column."""
    return Jsonb(encode_headers_json(headers), dumps=bytes)


def _decoded(record: dict[str, Any]) -> WaitRecord | str:
    try:
        decoded = decode_wait_record(record[KEY], record[VALUE], record[HEADERS])
    except DataError as error:
        return str(error)
    return decoded if decoded.expires_at_ms in SHOWABLE_MS else "the expiry time is outside of the years 1 to 9999"


def _values(record: dict[str, Any], decoded: WaitRecord) -> tuple[Any, ...]:
    return (
        *_attributes(decoded),
        showable(decoded.original.timestamp_ms),
        headers_value(decoded.original.headers),
        moment(decoded.expires_at_ms),
        decoded.idempotency_key or decoded.wait_id,
        record[TOPIC],
        record[PARTITION],
        record[OFFSET],
        *(decoded.source or (None, None, None)),
    )
