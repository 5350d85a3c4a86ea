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
    recorded, positions = read_progress(connection, settings.operations.topic)
    row = connection.execute(QUERIES["has_operations"]).fetchone()
    assert row is not None  # a select without from has one row
    if recorded is None and not row[0]:
        return None
    identity = describe_topic(admin, settings.operations.topic)
    if recorded is not None:
        require_same_operations_topic(connection, recorded, identity)
    name = TopicPartition(identity.topic, 0)
    ends, end = log_ends(connection, admin, [name]), stable_ends(admin, [name])[name]
    whole = WholeLog(settings, spark, admin, name, PRODUCER_MAX_MESSAGE_BYTES)
    with connection.transaction() as transaction:
        connection.execute(QUERIES["hold_operations"])
        if recorded is None:
            keep_earlier_marks(connection, identity.topic)
        _replace(connection, whole, end, progress)
        result = _compare(connection, identity.topic, end)
        if dry_run:
            raise psycopg.Rollback(transaction)
        new = {name: Position(end, ends.listed_at, ends.ends[name])}
        if recorded is None:
            begin_operations(connection, identity, new)
        else:
            advance_progress(connection, positions, new)
    log.info("%s", result)
    return result


def _replace(connection: Connection, whole: WholeLog, end: int, progress: Progress) -> None:
    connection.execute(QUERIES["remove_marks"], {"first": whole.first})
    connection.execute(QUERIES["remove_events"], {"first": whole.first})
    writer, begins = OperationWriter(), True
    for records in whole.batches(end, progress):
        if begins and records.num_rows:
            # Jobs that were requested before the first record are only in the table; later events change them.
            first_ms = pc.min(records[TIME_MS]).as_py()
            connection.execute(QUERIES["remove_operations"], {"since": moment(clamped(first_ms))})
            begins = False
        writer.store(connection, records)
    connection.execute(QUERIES["forget_earlier_twins"])


def _compare(connection: Connection, topic: str, end: int) -> OperationsResult:
    states = connection.execute(QUERIES["show_all_marks"]).rowcount
    row = connection.execute(QUERIES["compare_operations"]).fetchone()
    assert row is not None  # a select of counts has one row
    marks, jobs, events = row
    return OperationsResult(topic, end, marks, jobs, events, states)
