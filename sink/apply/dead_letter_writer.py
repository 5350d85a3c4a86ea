"""Writes a batch of dead letter topics into the table ``dead_letter``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from sink.apply.copy_binary import Column, int4, int8, jsonb, text, time_ms
from sink.apply.quarantine import Quarantined, quarantined
from sink.apply.wait_rows import RECORDS_AT_ONCE, showable_ms
from sink.apply.wait_writer import copy_columns, insert_quarantined
from sink.position import TopicPartition
from sink.progress import QUERIES, Connection, Written
from sink.read.batch import HEADERS, KEY, OFFSET, OMITTED_BYTES, PARTITION, TIME_MS, TOPIC, VALUE, records_of
from wait_registry.records.dead_letter import decode_dead_letter
from wait_registry.records.headers import encode_headers_json

# Name, Arrow type and encoding of each column, in the order of `_values`.
COLUMNS: Final[tuple[tuple[str, pa.DataType, Callable[[pa.Array], pa.Array]], ...]] = (
    ("topic", pa.string(), text),
    ("partition", pa.int32(), int4),
    ("offset", pa.int64(), int8),
    ("key", pa.binary(), text),
    ("headers", pa.binary(), jsonb),
    ("body", pa.binary(), text),
    ("dead_letter_time", pa.int64(), time_ms),
    ("reason", pa.string(), text),
    ("error_class", pa.string(), text),
    ("error_message", pa.string(), text),
    ("error_stacktrace", pa.string(), text),
    ("wait_expiration_uuid", pa.string(), text),
    ("original_topic", pa.string(), text),
    ("original_partition", pa.int32(), int4),
    ("original_offset", pa.int64(), int8),
    ("original_timestamp", pa.int64(), time_ms),
    ("original_timestamp_ms", pa.int64(), int8),
    ("original_timestamp_type", pa.string(), text),
    ("consumer_group", pa.string(), text),
    ("instance", pa.string(), text),
    ("delivery", pa.int32(), int4),
    ("wait_partition", pa.int32(), int4),
    ("wait_offset", pa.int64(), int8),
)
_LINEAGE_COLUMNS: Final = 12


@dataclass(frozen=True, slots=True)
class LetterBatch:
    """The columns of the table, and the dead letters that were read without what is in them."""

    columns: list[Column]
    omitted: list[Quarantined]


class DeadLetterWriter:
    """The dead letter topics' side of the sink; records that are no dead letters are kept too, with reason null."""

    stream = "dead_letter"

    def prepare(self, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> LetterBatch:
        """Decode a batch into the columns of the table; pure, and bad records raise nothing."""
        parts: list[pa.Table] = []
        omitted: list[Quarantined] = []
        for start in range(0, batch.num_rows, RECORDS_AT_ONCE):
            records = records_of(batch.slice(start, RECORDS_AT_ONCE))
            rows = [_values(record) for record in records if record.get(OMITTED_BYTES) is None]
            parts.append(_table(rows))
            omitted += [_omitted(record) for record in records if record.get(OMITTED_BYTES) is not None]
        joined = pa.concat_tables([_table([]), *parts])
        columns = [Column(name, encode, joined[name].combine_chunks()) for name, _, encode in COLUMNS]
        return LetterBatch(columns, omitted)

    def write(self, connection: Connection, batch: LetterBatch) -> Written:
        """Write within the caller's transaction; errors are psycopg's."""
        count, omitted = len(batch.columns[0].values), len(batch.omitted)
        insert_quarantined(connection, batch.omitted)
        if not count:
            return Written("dead_letter", 0, 0, omitted, 0)
        copy_columns(connection, "staged_dead_letter", batch.columns)
        connection.execute(QUERIES["analyze_dead_letters"])
        connection.execute(QUERIES["upsert_dead_letters"])
        connection.execute(QUERIES["lock_marking"])
        connection.execute(QUERIES["prefer_probes"])
        marked = connection.execute(QUERIES["mark_by_dead_letters"]).rowcount
        return Written("dead_letter", count, 0, omitted, marked)


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    transposed = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return pa.table({name: pa.array(values, kind) for (name, kind, _), values in zip(COLUMNS, transposed, strict=True)})


def _omitted(record: dict[str, Any]) -> Quarantined:
    """Return what is kept of a dead letter that the view doesn't hold: a row without its value would be sent on so."""
    reason = f"the dead letter is of {record[OMITTED_BYTES]} bytes, more than the view takes: read it in the topic"
    return quarantined(record[TOPIC], record, reason)


def _values(record: dict[str, Any]) -> tuple[Any, ...]:
    letter = decode_dead_letter(record[HEADERS])
    place = (record[TOPIC], record[PARTITION], record[OFFSET], record[KEY])
    failure, lineage = letter.failure, letter.lineage
    content = (encode_headers_json(letter.headers), record[VALUE])
    if failure is None or lineage is None:
        return (*place, *content, showable_ms(record[TIME_MS]), *[None] * (4 + _LINEAGE_COLUMNS))
    return (
        *place,
        *content,
        showable_ms(failure.time_ms),
        failure.reason.value,
        failure.error_class,
        failure.error_message,
        failure.error_stacktrace,
        lineage.wait_id,
        lineage.original_topic,
        lineage.original_partition,
        lineage.original_offset,
        showable_ms(lineage.original_timestamp_ms),
        lineage.original_timestamp_ms,
        lineage.original_timestamp_type,
        lineage.group,
        lineage.instance,
        lineage.delivery,
        lineage.wait_partition,
        lineage.wait_offset,
    )
