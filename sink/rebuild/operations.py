"""The rebuild of jobs, marks and the states of dead letters from the operations topic, in one transaction.

The topic isn't compacted, so its records are all that happened. Marks of an earlier operations topic, and those that
the topic no longer keeps, are only in the tables; they stay.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import psycopg
import pyarrow.compute as pc
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sink.apply.operation_writer import OperationWriter
from sink.position import Position, TopicPartition, clamped, moment
from sink.progress import Connection, advance_progress, begin_operations, read_progress
from sink.read.log_ends import log_ends, stable_ends
from sink.read.record_columns import TIME_MS
from sink.read.start_positions import keep_earlier_marks, require_same_operations_topic
from sink.rebuild.replacement import QUERIES
from sink.rebuild.whole_log import Progress, WholeLog
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES
from wait_registry.kafka.cluster import describe_topic
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OperationsResult:
    """What the operations topic holds, and in how many rows the tables differed from it."""

    topic: str
    next_offset: int
    marks: int
    jobs: int
    events: int
    states: int

    @property
    def changed(self) -> int:
        """Marks, jobs, other events and dead letters that differed."""
        return self.marks + self.jobs + self.events + self.states

    def __str__(self) -> str:
        return (
            f"{self.topic} up to offset {self.next_offset}: {self.marks} marks, {self.jobs} jobs, {self.events} other "
            f"events and the states of {self.states} dead letters differed"
        )


def rebuild_operations(
    settings: Settings,
    spark: SparkSession,
    connection: Connection,
    admin: AdminClient,
    dry_run: bool,
    progress: Progress,
) -> OperationsResult | None:
    """Rebuild what operators did; arguments and errors as `sink.rebuild.tables.rebuild`.

    Returns:
        None if no sink has read the operations topic yet: it reads it from its start, so there is nothing to rebuild.
    """
    recorded, _ = read_progress(connection, settings.operations.topic)
    row = connection.execute(QUERIES["has_operations"]).fetchone()
    assert row is not None  # a select without from has one row
    if recorded is None and not row[0]:
        return None
    result = OperationsRebuild(settings, spark, connection, admin).run(dry_run, progress)
    log.info("%s", result)
    return result


class OperationsRebuild:
    """Reads the operations topic from its start, and replaces the marks and jobs that it holds."""

    def __init__(self, settings: Settings, spark: SparkSession, connection: Connection, admin: AdminClient) -> None:
        """Read nothing yet.

        Raises:
            ConfigurationError: there is no operations topic, or it isn't the one that the tables were made from.
        """
        self._connection = connection
        self._admin = admin
        self._recorded, self._positions = read_progress(connection, settings.operations.topic)
        self._identity = describe_topic(admin, settings.operations.topic)
        if self._recorded is not None:
            require_same_operations_topic(connection, self._recorded, self._identity)
        self._name = TopicPartition(settings.operations.topic, 0)
        self._log = WholeLog(settings, spark, admin, self._name, PRODUCER_MAX_MESSAGE_BYTES)

    def run(self, dry_run: bool, progress: Progress) -> OperationsResult:
        """Rebuild; errors as `sink.rebuild.tables.rebuild`."""
        ends = log_ends(self._connection, self._admin, [self._name])
        end = stable_ends(self._admin, [self._name])[self._name]
        with self._connection.transaction() as transaction:
            self._connection.execute(QUERIES["hold_marks"])
            self._connection.execute(QUERIES["hold_operations"])
            self._connection.execute(QUERIES["hold_events"])
            if self._recorded is None:
                keep_earlier_marks(self._connection, self._name.topic)
            self._replace(end, progress)
            result = self._compare(end)
            if dry_run:
                raise psycopg.Rollback(transaction)
            self._record(Position(end, ends.listed_at, ends.ends[self._name]))
        return result

    def _replace(self, end: int, progress: Progress) -> None:
        self._connection.execute(QUERIES["remove_marks"], {"first": self._log.first})
        self._connection.execute(QUERIES["remove_events"], {"first": self._log.first})
        writer, begins = OperationWriter(), True
        for records in self._log.batches(end, progress):
            if begins and records.num_rows:
                # Jobs that were requested before the first record are only in the table; later events change them.
                first_ms = pc.min(records[TIME_MS]).as_py()
                self._connection.execute(QUERIES["remove_operations"], {"since": moment(clamped(first_ms))})
                begins = False
            writer.store(self._connection, records)
        self._connection.execute(QUERIES["forget_earlier_twins"])

    def _compare(self, end: int) -> OperationsResult:
        states = self._connection.execute(QUERIES["show_all_marks"]).rowcount
        row = self._connection.execute(QUERIES["compare_operations"]).fetchone()
        assert row is not None  # a select of counts has one row
        marks, jobs, events = row
        return OperationsResult(self._name.topic, end, marks, jobs, events, states)

    def _record(self, position: Position) -> None:
        expected, new = self._positions, {self._name: position}
        if self._recorded is None:
            begin_operations(self._connection, self._identity, new)
        else:
            advance_progress(self._connection, expected, new)
