"""Writes a batch of the wait topic into Postgres: deletes, upserts, quarantine and late outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sink.apply.compaction import Compacted, compact
from sink.apply.late_outcomes import LateOutcome, late_outcomes
from sink.apply.quarantine import Quarantined, insert_quarantined, quarantined
from sink.apply.staging import copy_rows, copy_table
from sink.apply.wait_rows import COLUMNS, EarlierWaits, wait_rows
from sink.position import SHOWABLE_MS, TopicPartition
from sink.progress import QUERIES, Connection, Written
from sink.read.record_columns import records_of
from wait_registry.records.tombstone import Outcome

PROCESSOR_OUTCOMES = pa.array([outcome.value for outcome in Outcome if outcome.by_processor], pa.string())
KNOWN_OUTCOMES = pa.array([outcome.value for outcome in Outcome], pa.string())


@dataclass(frozen=True, slots=True)
class Staged:
    """What is in the staged tables of one batch (numbers of rows), and what goes into other tables."""

    rows: int
    tombstones: int
    late: list[LateOutcome]
    unreadable: list[Quarantined]


class WaitWriter:
    """The wait topic's side of the sink; holds no connection and no position."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def stage(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Staged:
        """Compact and decode a batch into the staged tables, which must be empty; bad records raise nothing.

        ``whole_from`` is, for each partition, the offset from which the log is known to have been read before
        compaction could touch it: only there a tombstone without a wait means that its ID was settled before.
        """
        compacted = compact(batch)
        unreadable = [
            quarantined(record, "the key is no wait ID (canonical lower-case UUID)")
            for record in records_of(compacted.unkeyed)
        ]
        if compacted.tombstones.num_rows:
            copy_table(connection, "staged_tombstone", staged_tombstones(compacted, self._topic, whole_from))
        rows = wait_rows(compacted.survivors, EarlierWaits(batch), unreadable)
        copied = copy_rows(connection, "staged_wait", COLUMNS, rows) if compacted.survivors.num_rows else 0
        return Staged(copied, compacted.tombstones.num_rows, late_outcomes(compacted.entwined), unreadable)

    def write(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Written:
        """Write within the caller's transaction: deletes first, then what survived; errors are psycopg's."""
        staged = self.stage(connection, batch, whole_from)
        deleted = late = marked = 0
        if staged.tombstones:
            connection.execute(QUERIES["analyze_tombstones"])
            connection.execute(QUERIES["prefer_probes"])
            deleted, late = self._settle(connection, staged)
            if late:
                connection.execute(QUERIES["lock_marking"])
            marked = connection.execute(QUERIES["mark_by_tombstones"]).rowcount
        if staged.rows:
            connection.execute(QUERIES["upsert_waits"])
        insert_quarantined(connection, staged.unreadable)
        return Written("wait", staged.rows, deleted, len(staged.unreadable), marked)

    def _settle(self, connection: Connection, staged: Staged) -> tuple[int, int]:
        row = connection.execute(QUERIES["settle"], {"topic": self._topic}).fetchone()
        assert row is not None  # a select of two counts has one row
        with connection.cursor() as cursor:
            cursor.executemany(QUERIES["insert_late"], staged.late)
        return row[0], row[1] + len(staged.late)


def staged_tombstones(compacted: Compacted, topic: str, whole_from: dict[TopicPartition, int]) -> pa.Table:
    """Return the rows of ``staged_tombstone``."""
    found = compacted.tombstones
    limits = {name.partition: offset for name, offset in whole_from.items() if name.topic == topic}
    place = pc.index_in(found["partition"], pa.array(limits, pa.int32()))
    whole = pc.fill_null(pa.array(limits.values(), pa.int64()).take(place), 0)
    outcome = pc.if_else(
        pc.is_in(found["first_outcome"], KNOWN_OUTCOMES), found["first_outcome"], pa.scalar(None, pa.string())
    )
    return pa.table(
        {
            "wait_expiration_uuid": found["key"],
            "wait_partition": found["partition"],
            "last_offset": found["last_offset"],
            "first_offset": found["first_offset"],
            "first_time": _times(found["first_time_ms"]),
            "first_outcome": outcome,
            "first_is_tombstone": found["first_is_tombstone"],
            "orphan_counts": pc.greater_equal(found["first_offset"], whole),
            "by_processor": pc.is_in(outcome, PROCESSOR_OUTCOMES),
            "wait_expiration_time": _times(found["wait_expires_ms"]),
        }
    )


def _times(times_ms: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as Postgres reads them; a foreign record's may be beyond what a timestamptz can show."""
    at_most = pc.min_element_wise(times_ms, SHOWABLE_MS[-1], skip_nulls=False)
    return pc.cast(pc.max_element_wise(at_most, SHOWABLE_MS[0], skip_nulls=False), pa.timestamp("ms", "UTC"))
