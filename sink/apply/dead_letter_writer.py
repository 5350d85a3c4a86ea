"""Writes a batch of dead letter topics into the table ``dead_letter``."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from psycopg.types.json import Jsonb

from sink.apply.staging import copy_rows, insert_quarantined
from sink.condense.quarantined import Quarantined, quarantined
from sink.position import TopicPartition, showable
from sink.progress import QUERIES, Connection, Written
from sink.read.record_columns import HEADERS, KEY, OFFSET, OMITTED_BYTES, PARTITION, TIME_MS, TOPIC, VALUE, records_of
from wait_registry.records.dead_letter import decode_dead_letter
from wait_registry.records.headers import encode_headers_json

# Columns that are attributes of the dead letter: the type of each, and where it is.
ATTRIBUTES: Final = {
    "reason": ("text", "failure.reason.value"),
    "error_class": ("text", "failure.error_class"),
    "error_message": ("text", "failure.error_message"),
    "error_stacktrace": ("text", "failure.error_stacktrace"),
    "wait_expiration_uuid": ("text", "lineage.wait_id"),
    "original_topic": ("text", "lineage.original_topic"),
    "original_partition": ("int4", "lineage.original_partition"),
    "original_offset": ("int8", "lineage.original_offset"),
    "original_timestamp_ms": ("int8", "lineage.original_timestamp_ms"),
    "original_timestamp_type": ("text", "lineage.original_timestamp_type"),
    "consumer_group": ("text", "lineage.group"),
    "instance": ("text", "lineage.instance"),
    "delivery": ("int4", "lineage.delivery"),
    "wait_partition": ("int4", "lineage.wait_partition"),
    "wait_offset": ("int8", "lineage.wait_offset"),
}
# Columns that a record of the topic has which is no dead letter.
_OF_ANY: Final = {
    "topic": "text",
    "partition": "int4",
    "offset": "int8",
    "key": "bytea",
    "headers": "jsonb",
    "body": "bytea",
    "dead_letter_time": "timestamptz",
}
# Name and type of each column, in the order of `_values`.
COLUMNS: Final = {
    **_OF_ANY,
    **{column: kind for column, (kind, _) in ATTRIBUTES.items()},
    "idempotency_key": "text",
    "original_timestamp": "timestamptz",
    "source_topic": "text",
    "source_partition": "int4",
    "source_offset": "int8",
}
_attributes = attrgetter(*(place for _, place in ATTRIBUTES.values()))


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
    decoded = decode_dead_letter(record[HEADERS])
    failure, lineage = decoded.failure, decoded.lineage
    place = (record[TOPIC], record[PARTITION], record[OFFSET], record[KEY])
    content = (Jsonb(encode_headers_json(decoded.headers), dumps=bytes), record[VALUE])
    if failure is None or lineage is None:
        return (*place, *content, showable(record[TIME_MS]), *[None] * (len(COLUMNS) - len(_OF_ANY)))
    return (
        *place,
        *content,
        showable(failure.time_ms),
        *_attributes(decoded),
        lineage.idempotency_key or lineage.wait_id,
        showable(lineage.original_timestamp_ms),
        *(lineage.source or (None, None, None)),
    )
