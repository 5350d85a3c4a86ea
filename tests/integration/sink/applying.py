"""Applies hand-made batches to the run's Postgres, as the stream does, without Kafka and Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from sink.apply.applier import Applied, Applier, Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.wait_writer import WaitWriter
from sink.position import LogEnds, Position, TopicPartition
from sink.progress import Connection, begin_progress, postgres_now, read_progress
from tests.integration.sink.wait_topic import new_id
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.unit.sink.batches import Row, batch_of
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.postgres.connection import connect
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.settings.tree import Settings

PARTITIONS = 3
ORIGINAL = Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"body", ())


class HandFed:
    """An `Applier` whose log is a list of rows: batches are fed by hand, the log's end is far away."""

    def __init__(
        self,
        settings: Settings,
        topic: str = "wait",
        *,
        dead_letters: bool = False,
        writer: Writer | None = None,
        identity: TopicIdentity | None = None,
        retention_ms: int | None = None,
        whole_from: int = 0,
    ) -> None:
        self.connection: Connection = connect(settings.postgres, autocommit=True, application_name="test")
        self.topic = topic
        identity = identity or TopicIdentity(topic, "id", PARTITIONS)
        names = [TopicPartition(topic, partition) for partition in range(identity.partitions)]
        self.log_end = 10**6
        begin_progress(self.connection, identity, {name: Position(0, postgres_now(self.connection)) for name in names})
        _, positions = read_progress(self.connection, topic)
        writer = writer or (DeadLetterWriter() if dead_letters else WaitWriter(topic))
        self.applier: Applier = Applier(
            self.connection,
            writer,
            positions,
            list_ends=lambda: LogEnds(dict.fromkeys(names, self.log_end), postgres_now(self.connection)),
            delete_retention_ms=retention_ms,
            whole_from=dict.fromkeys(names, whole_from),
        )

    def feed(self, rows: list[Row], ends: dict[int, int] | None = None) -> Applied:
        """Apply a batch that ends after its last record of each partition, or at ``ends``."""
        places = {row.partition: row.offset + 1 for row in sorted(rows, key=lambda row: row.offset)}
        at = {TopicPartition(self.topic, partition): end for partition, end in (ends or places).items()}
        return self.applier.apply(batch_of(rows), at)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def now_ms() -> int:
    """Return the time now, ms since the epoch."""
    return int(datetime.now(UTC).timestamp() * 1000)


def row_in_the_log(record: ReadRecord) -> Row:
    """Return a record that was read as a batch has it."""
    time_ms = record.timestamp_ms
    return Row(record.key, record.value, record.partition, record.offset, time_ms, record.headers, record.topic)


def row_of(record: Outgoing, offset: int) -> Row:
    """Return a record as a batch has it, once it was written at this offset."""
    return Row(record.key, record.value, record.partition or 0, offset, now_ms(), tuple(record.headers))


def letter(
    topic: str, offset: int, body: bytes, wait_id: str = "", reason: Reason = Reason.EXPIRED, registered: int = 1
) -> Row:
    """Return a dead letter as a batch has it, of the registration at an offset of partition 0."""
    lineage = Lineage.of(
        ORIGINAL,
        wait_id=wait_id or new_id(),
        wait_partition=0,
        wait_offset=registered,
        group="g",
        instance="i",
        delivery=1,
    )
    headers = dead_letter_headers((), lineage, Failure(reason, "Error", "message", None, now_ms()))
    return Row(b"k", body, 0, offset, now_ms(), tuple(headers), topic)
