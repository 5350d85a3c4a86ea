"""Writes a batch of the wait topic into Postgres: deletes, upserts, quarantine and late outcomes."""

from __future__ import annotations

import pyarrow as pa

from sink.apply.staging import copy_condensed, insert_quarantined
from sink.condense.condensed import TOMBSTONE_COLUMNS, Condensed, condense
from sink.condense.wait_rows import COLUMNS
from sink.position import TopicPartition
from sink.progress import QUERIES, Connection, Written


class WaitWriter:
    """The wait topic's side of the sink; holds no connection and no position."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def stage(self, connection: Connection, batch: pa.Table) -> Condensed:
        """Condense a batch into the staged tables, which must be empty; bad records raise nothing."""
        condensed = condense(batch)
        copy_condensed(connection, "staged_tombstone", TOMBSTONE_COLUMNS, condensed.tombstones)
        copy_condensed(connection, "staged_wait", COLUMNS, condensed.waits)
        return condensed

    def write(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Written:
        """Write within the caller's transaction: deletes first, then what survived; errors are psycopg's.

        ``whole_from`` is, for each partition, the offset from which the log is known to have been read before
        compaction could touch it: only there a tombstone without a wait means that its ID was settled before.
        """
        staged = self.stage(connection, batch)
        deleted = late = marked = 0
        if staged.tombstones.count:
            connection.execute(QUERIES["analyze_tombstones"])
            connection.execute(QUERIES["prefer_probes"])
            deleted, late = self._settle(connection, staged, whole_from)
            if late:
                connection.execute(QUERIES["lock_marking"])
            marked = connection.execute(QUERIES["mark_by_tombstones"]).rowcount
        if staged.waits.count:
            connection.execute(QUERIES["upsert_waits"])
        insert_quarantined(connection, staged.unreadable)
        return Written("wait", staged.waits.count, deleted, len(staged.unreadable), marked)

    def _settle(
        self, connection: Connection, staged: Condensed, whole_from: dict[TopicPartition, int]
    ) -> tuple[int, int]:
        limits = {name.partition: offset for name, offset in whole_from.items() if name.topic == self._topic}
        row = connection.execute(
            QUERIES["settle"],
            {"topic": self._topic, "partitions": list(limits), "whole_from": list(limits.values())},
        ).fetchone()
        assert row is not None  # a select of two counts has one row
        with connection.cursor() as cursor:
            cursor.executemany(QUERIES["insert_late"], staged.late)
        return row[0], row[1] + len(staged.late)
