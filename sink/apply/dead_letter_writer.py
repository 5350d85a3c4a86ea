"""Writes a batch of dead letter topics into the table ``dead_letter``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from sink.apply.quarantine import Quarantined, insert_quarantined, quarantined
from sink.apply.staging import copy_rows
from sink.apply.wait_rows import headers_value
from sink.position import TopicPartition, showable
from sink.progress import QUERIES, Connection, Written
from sink.read.record_columns import HEADERS, KEY, OFFSET, OMITTED_BYTES, PARTITION, TIME_MS, TOPIC, VALUE, records_of
from wait_registry.records.dead_letter import decode_dead_letter

# Name and type of each column, in the order of `_values`.
COLUMNS: Final = {
    "topic": "text",
    "partition": "int4",
    "offset": "int8",
    "key": "bytea",
    "headers": "jsonb",
    "body": "bytea",
    "dead_letter_time": "timestamptz",
    "reason": "text",
    "error_class": "text",
    "error_message": "text",
    "error_stacktrace": "text",
    "wait_expiration_uuid": "text",
    "idempotency_key": "text",
    "original_topic": "text",
    "original_partition": "int4",
    "original_offset": "int8",
    "original_timestamp": "timestamptz",
    "original_timestamp_ms": "int8",
    "original_timestamp_type": "text",
    "consumer_group": "text",
    "instance": "text",
    "delivery": "int4",
    "wait_partition": "int4",
    "wait_offset": "int8",
    "source_topic": "text",
    "source_partition": "int4",
    "source_offset": "int8",
}


class DeadLetterWriter:
    """The dead letter topics' side of the sink; records that are no dead letters are kept too, with reason null."""

    def write(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Written:
        """Write within the caller's transaction; errors are psycopg's, and bad records raise nothing."""
        omitted: list[Quarantined] = []
        count = copy_rows(connection, "staged_dead_letter", COLUMNS, dead_letter_rows(batch, omitted))
        insert_quarantined(connection, omitted)
        if not count:
            return Written("dead_letter", 0, 0, len(omitted), 0)
        connection.execute(QUERIES["analyze_dead_letters"])
        connection.execute(QUERIES["upsert_dead_letters"])
        connection.execute(QUERIES["lock_marking"])
        connection.execute(QUERIES["prefer_probes"])
        marked = connection.execute(QUERIES["mark_by_dead_letters"]).rowcount
        connection.execute(QUERIES["show_marks_of_staged"])
        return Written("dead_letter", count, 0, len(omitted), marked)


def dead_letter_rows(batch: pa.Table, omitted: list[Quarantined]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of dead letters; ``omitted`` receives those that were read without what is in them."""
    for record in records_of(batch):
        if record.get(OMITTED_BYTES) is None:
            yield _values(record)
        else:
            # Not a row without its value: an operator would redrive it so.
            reason = f"the dead letter is of {record[OMITTED_BYTES]} bytes, more than the table takes: read the topic"
            omitted.append(quarantined(record, reason))


def _values(record: dict[str, Any]) -> tuple[Any, ...]:
    letter = decode_dead_letter(record[HEADERS])
    place = (record[TOPIC], record[PARTITION], record[OFFSET], record[KEY])
    failure, lineage = letter.failure, letter.lineage
    content = (headers_value(letter.headers), record[VALUE])
    if failure is None or lineage is None:
        return (*place, *content, showable(record[TIME_MS]), *[None] * (len(COLUMNS) - 7))
    return (
        *place,
        *content,
        showable(failure.time_ms),
        failure.reason.value,
        failure.error_class,
        failure.error_message,
        failure.error_stacktrace,
        lineage.wait_id,
        lineage.idempotency_key or lineage.wait_id,
        lineage.original_topic,
        lineage.original_partition,
        lineage.original_offset,
        showable(lineage.original_timestamp_ms),
        lineage.original_timestamp_ms,
        lineage.original_timestamp_type,
        lineage.group,
        lineage.instance,
        lineage.delivery,
        lineage.wait_partition,
        lineage.wait_offset,
        *(lineage.source or (None, None, None)),
    )
