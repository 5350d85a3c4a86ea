"""The rebuild of one partition: chunk by chunk into a temporary table, then all at once into the table ``wait``."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pyarrow as pa
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sink.apply.staging import insert_quarantined
from sink.apply.wait_writer import WaitWriter
from sink.position import LogEnds, Position, TopicPartition, require_read_in_time
from sink.progress import QUERIES as SINK_QUERIES
from sink.progress import Connection, advance_progress, postgres_now, read_progress
from sink.rebuild.whole_log import Progress, WholeLog
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.postgres.queries import Queries
from wait_registry.settings.tree import Settings

QUERIES = Queries("rebuild")


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What the log holds in one partition, and how the table differed from it."""

    partition: int
    rows: int
    missing: int
    different: int
    orphans: int
    quarantined: int
    next_offset: int

    def __str__(self) -> str:
        return (
            f"partition {self.partition}: {self.rows} waits up to offset {self.next_offset}; the table lacked "
            f"{self.missing}, had {self.different} different and {self.orphans} that the log doesn't hold; "
            f"{self.quarantined} records unreadable"
        )


class PartitionRebuild:
    """Reads one partition from its start to an end listed before, and replaces its rows."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        connection: Connection,
        admin: AdminClient,
        name: TopicPartition,
    ) -> None:
        self._log = WholeLog(settings, spark, admin, name, settings.wait.max_message_bytes)
        self._connection = connection
        self._admin = admin
        self._name = name
        self._writer = WaitWriter(name.topic)
        connection.execute(SINK_QUERIES["stage"])
        connection.execute(QUERIES["stage"])

    def run(self, ends: LogEnds, end: int, dry_run: bool, progress: Progress) -> PartitionResult:
        """Rebuild up to ``end``, the last stable offset, which was listed after ``ends``.

        Errors as `sink.rebuild.tables.rebuild`.
        """
        _, recorded = read_progress(self._connection, self._name.topic)
        with self._connection.transaction() as transaction:
            quarantined = sum(self._keep(records) for records in self._log.batches(end, progress))
            retention_ms = delete_retention_ms(self._admin, self._name.topic)
            require_read_in_time(self._name, ends.listed_at, postgres_now(self._connection), retention_ms)
            result = self._compare(end, quarantined)
            if dry_run:
                raise psycopg.Rollback(transaction)
            # As fresh as the listing: what was read began at the log's start (see `sink.read.start_positions`). What an
            # open transaction kept from it is still to be read.
            self._replace(recorded.get(self._name), Position(end, ends.listed_at, ends.ends[self._name]))
        return result

    def _keep(self, records: pa.Table) -> int:
        """Add records to the temporary table; return how many can't be decoded."""
        self._connection.execute(QUERIES["next_chunk"])
        staged = self._writer.stage(self._connection, records)
        if staged.tombstones.count:
            self._connection.execute(QUERIES["resolve"])
        if staged.waits.count:
            self._connection.execute(QUERIES["forget_renewed"])
            self._connection.execute(QUERIES["keep"])
        insert_quarantined(self._connection, staged.unreadable)
        return len(staged.unreadable)

    def _compare(self, end: int, quarantined: int) -> PartitionResult:
        self._connection.execute(QUERIES["analyze"])
        self._connection.execute(QUERIES["keep_ages"])
        row = self._connection.execute(QUERIES["compare"], self._place).fetchone()
        assert row is not None  # a select of counts has one row
        rows, missing, different, orphans = row
        return PartitionResult(self._name.partition, rows, missing, different, orphans, quarantined, end)

    def _replace(self, expected: Position | None, position: Position) -> None:
        # There is none alongside a Connect sink.
        if expected is not None:
            advance_progress(self._connection, {self._name: expected}, {self._name: position})
        self._connection.execute(QUERIES["remove_rows"], self._place)
        self._connection.execute(QUERIES["remove_moved"])
        self._connection.execute(QUERIES["insert_rows"])

    @property
    def _place(self) -> dict[str, str | int]:
        return {"topic": self._name.topic, "partition": self._name.partition}
