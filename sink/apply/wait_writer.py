"""Writes a batch of the wait topic into Postgres: deletes, upserts, quarantine and late outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from sink.apply.compaction import Compacted, compact
from sink.apply.copy_binary import Column, boolean, copy_stream, int4, int8, text, time_ms
from sink.apply.earlier_waits import EarlierWaits
from sink.apply.late_outcomes import LateOutcome, late_outcomes
from sink.apply.quarantine import Quarantined, quarantined
from sink.apply.wait_rows import WaitRows, wait_rows
from sink.position import TopicPartition
from sink.progress import QUERIES, Connection, Written
from sink.read.batch import records_of
from wait_registry.records.tombstone import Outcome

PROCESSOR_OUTCOMES = pa.array([outcome.value for outcome in Outcome if outcome.by_processor], pa.string())
KNOWN_OUTCOMES = pa.array([outcome.value for outcome in Outcome], pa.string())


@dataclass(frozen=True, slots=True)
class WaitBatch:
    """What one batch of the wait topic comes to, before anything is written."""

    rows: WaitRows
    tombstones: list[Column]
    late: list[LateOutcome]
    unreadable: list[Quarantined] = field(default_factory=list)


class WaitWriter:
    """The wait topic's side of the sink; holds no connection and no position."""

    stream = "wait"

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def prepare(self, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> WaitBatch:
        """Compact and decode a batch; pure, and bad records raise nothing.

        ``whole_from`` is, for each partition, the offset from which the log is known to have been read before
        compaction could touch it: only there a tombstone without a wait means that its ID was resolved before.
        """
        compacted = compact(batch)
        rows = wait_rows(self._topic, compacted.survivors, EarlierWaits(batch).before)
        unkeyed = [
            quarantined(self._topic, record, "the key is no wait id (canonical lower-case UUID)")
            for record in records_of(compacted.unkeyed)
        ]
        return WaitBatch(
            rows=rows,
            tombstones=_tombstone_columns(compacted, self._topic, whole_from),
            late=late_outcomes(compacted.entwined),
            unreadable=[*rows.unreadable, *unkeyed],
        )

    def write(self, connection: Connection, batch: WaitBatch) -> Written:
        """Write within the caller's transaction: deletes first, then what survived; errors are psycopg's."""
        deleted = late = marked = 0
        if len(batch.tombstones[0].values):
            copy_columns(connection, "staged_tombstone", batch.tombstones)
            connection.execute(QUERIES["analyze_tombstones"])
            connection.execute(QUERIES["prefer_probes"])
            deleted, late = self._settle(connection, batch)
            if late:
                connection.execute(QUERIES["lock_marking"])
            marked = connection.execute(QUERIES["mark_by_tombstones"]).rowcount
        if batch.rows.count:
            copy_columns(connection, "staged_wait", batch.rows.columns)
            connection.execute(QUERIES["upsert_waits"])
        insert_quarantined(connection, batch.unreadable)
        return Written("wait", batch.rows.count, deleted, len(batch.unreadable), marked)

    def _settle(self, connection: Connection, batch: WaitBatch) -> tuple[int, int]:
        row = connection.execute(QUERIES["settle"], {"topic": self._topic}).fetchone()
        assert row is not None  # a select of two counts has one row
        if batch.late:
            with connection.cursor() as cursor:
                cursor.executemany(
                    QUERIES["insert_late"],
                    [
                        (item.wait_id, item.outcome, self._topic, item.partition, item.offset, item.time_ms)
                        for item in batch.late
                    ],
                )
        return row[0], row[1] + len(batch.late)


def copy_columns(connection: Connection, table: str, columns: list[Column]) -> None:
    """Fill a table by binary COPY."""
    statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for piece in copy_stream(columns):
            copy.write(piece)


def insert_quarantined(connection: Connection, records: list[Quarantined]) -> None:
    """Keep unreadable records; those that are there already stay as they are."""
    if not records:
        return
    with connection.cursor() as cursor:
        cursor.executemany(QUERIES["quarantine"], [_quarantine_row(record) for record in records])


def _quarantine_row(record: Quarantined) -> tuple[Any, ...]:
    return (
        record.topic,
        record.partition,
        record.offset,
        record.time_ms,
        record.error,
        None if record.key is None else psycopg.Binary(record.key),
        record.headers_json,
        None if record.body is None else psycopg.Binary(record.body),
    )


def _tombstone_columns(compacted: Compacted, topic: str, whole_from: dict[TopicPartition, int]) -> list[Column]:
    found = compacted.tombstones.combine_chunks()
    partitions = found["partition"].combine_chunks()
    limits = {name.partition: offset for name, offset in whole_from.items() if name.topic == topic}
    place = pc.index_in(partitions, pa.array(limits, pa.int32()))
    whole = pc.fill_null(pa.array(limits.values(), pa.int64()).take(place), 0)
    outcome = pc.if_else(
        pc.is_in(found["first_outcome"], KNOWN_OUTCOMES), found["first_outcome"], pa.scalar(None, pa.string())
    )
    values = {
        "wait_expiration_uuid": (text, found["key"]),
        "wait_partition": (int4, partitions),
        "last_offset": (int8, found["last_offset"]),
        "first_offset": (int8, found["first_offset"]),
        "first_time": (time_ms, found["first_time_ms"]),
        "first_outcome": (text, outcome),
        "first_is_tombstone": (boolean, found["first_is_tombstone"]),
        "orphan_counts": (boolean, pc.greater_equal(found["first_offset"], whole)),
        "by_processor": (boolean, pc.is_in(outcome, PROCESSOR_OUTCOMES)),
        "wait_expiration_time": (time_ms, found["wait_expires_ms"]),
    }
    return [Column(name, encode, _contiguous(column)) for name, (encode, column) in values.items()]


def _contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.array([], column.type) if column.num_chunks == 0 else pa.concat_arrays(column.chunks)
