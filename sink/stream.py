"""One stream of the sink, from Kafka to Postgres: a run of it from start to failure or stop."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sink.advisory_lock import lock_key, wait_for_lock
from sink.applier import Applied, Applier, Writer
from sink.batch import left_out_bytes
from sink.batch_limit import BatchLimit
from sink.compaction import condensed
from sink.dead_letter_writer import DeadLetterWriter
from sink.hand_over import Gathered, HandOver
from sink.kafka_query import BatchTooLarge, KafkaQuery, require_spark
from sink.position import LogEnds, TopicPartition, whole_from
from sink.progress import Connection
from sink.sampling import sample_sizes
from sink.scratch import make_scratch, scratch_prefix
from sink.starting import (
    Start,
    dead_letter_start,
    log_ends,
    require_same_dead_letter_topics,
    stable_ends,
    wait_start,
)
from sink.telemetry import SinkTelemetry, StreamState
from sink.wait_writer import WaitWriter
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.kafka.wait_topic import require_same_wait_topic
from wait_registry.postgres.connection import lift_time_limits, schema_of
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

POLL_S = 0.25
# To ask Spark takes a look into the JVM and back: four times as often, that is a sixth of what an idle sink takes.
ASK_SPARK_S = 1.0
A_MOMENT_S = 0.01
# The default heap passes on one such dead letter, and reads over one of twice the size (docs/decisions/0015).
MAX_SHOWN_BYTES = 33_554_432
# Room for what a dead letter says beside its record, error and stack trace above all.
LINEAGE_BYTES = 65_536

OnCommitted = Callable[[Applied], None]


class SmallerBatches(TransientError):
    """The records have grown (or shrunk): the query starts again with another limit. Not a failure."""


@dataclass(frozen=True, slots=True)
class StreamContext:
    """What a stream works with; ``once`` ends it at the ends (last stable offsets) that its first run sees."""

    settings: Settings
    spark: SparkSession
    admin: AdminClient
    connections: OpenConnections
    telemetry: SinkTelemetry
    state: StreamState
    on_committed: OnCommitted
    once: bool = False


class SinkStream(ABC):
    """What both streams have in common; a subclass says where it starts, what it checks and how it writes."""

    name: str

    def __init__(self, context: StreamContext) -> None:
        self._settings = context.settings
        self._spark = context.spark
        self._admin = context.admin
        self._connections = context.connections
        self._telemetry = context.telemetry
        self._state = context.state
        self._on_committed = context.on_committed
        self._once = context.once
        self._targets: dict[TopicPartition, int] | None = None
        self._whole_from: dict[TopicPartition, int] = {}
        self._limit = BatchLimit(self._settings.sink.max_batch_records, self._settings.sink.max_batch_bytes)
        self._limit_learnt = False
        self._read_to: dict[TopicPartition, int] = {}

    @abstractmethod
    def start(self, connection: Connection) -> Start:
        """Return where to start; see `sink.starting`."""

    @abstractmethod
    def require_same_topics(self, start: Start) -> None:
        """Raise when a topic isn't what it was at the start."""

    @abstractmethod
    def writer(self) -> Writer[Any]:
        """Return what writes the batches."""

    @abstractmethod
    def largest_bytes(self) -> int:
        """Return how large a record may be, uncompressed."""

    def max_record_bytes(self) -> int | None:
        """Return the size beyond which a record isn't read into the view, None where all are."""
        return None

    def condensed(self, batch: pa.Table) -> pa.Table:
        """Return of a batch what may matter when it is written together with others."""
        return batch

    @abstractmethod
    def delete_retention_ms(self) -> int | None:
        """Return what bounds the age of a position, None for no bound."""

    def whole_from(self, start: Start, ends: LogEnds) -> dict[TopicPartition, int]:
        """Return `sink.position.whole_from` for a start, and keep it for the next one."""
        self._whole_from = whole_from(start.positions, start.new, ends, self._whole_from)
        return dict(self._whole_from)

    def run_once(self, stop: threading.Event) -> bool:
        """Run from the positions in Postgres until ``stop`` is set or, with ``once``, the ends are reached.

        Returns True: it is over. Raises what broke it. FencedError, ConfigurationError, `PositionTooOld` and
        `SparkGone` are fatal; after anything else run it again, with a pause.
        """
        require_spark(self._spark)
        with self._connections.open(self._settings.postgres, f"waitreg sink {self.name}") as connection:
            connection.execute("set synchronous_commit to on")
            lift_time_limits(connection)
            # An earlier connection of ours may still be committing on the server; its lock goes when it is done.
            key = lock_key("stream", schema_of(connection), self._settings.wait.topic, self.name)
            if not wait_for_lock(connection, key, stop, self._waiting):
                return True
            start = self.start(connection)
            self._run(connection, start, stop)
        return True

    def _run(self, connection: Connection, start: Start, stop: threading.Event) -> None:
        offsets = {name: position.next_offset for name, position in start.positions.items()}
        ends = stable_ends(self._admin, offsets)
        if self._once and self._targets is None:
            self._targets = ends
        retention_ms = self.delete_retention_ms()
        self._state.bounded(retention_ms)
        if not self._limit_learnt:
            self._limit = self._looked_ahead(offsets, ends)
        applier = Applier(
            connection,
            self.writer(),
            start.positions,
            list_ends=lambda: log_ends(connection, self._admin, offsets),
            require_same_topics=lambda: self.require_same_topics(start),
            delete_retention_ms=retention_ms,
            whole_from=self.whole_from(start, log_ends(connection, self._admin, offsets)),
        )
        # Before the first record is asked for: a position that is too old is refused, a topic that changed is noticed.
        self._committed(applier.refresh(), time.monotonic())
        prefix = scratch_prefix(connection, self._settings.wait.topic, self.name)
        self._query(applier, offsets, prefix, stop)

    def _looked_ahead(self, offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> BatchLimit:
        aim = self._settings.sink.max_batch_bytes
        harmless = aim // self.largest_bytes()
        sample = sample_sizes(self._settings.kafka, offsets, ends, harmless=harmless, max_bytes=aim)
        return self._limit.sampled(sample.records, sample.nbytes, whole=sample.whole, harmless=harmless)

    def _query(
        self, applier: Applier[Any], offsets: Mapping[TopicPartition, int], prefix: str, stop: threading.Event
    ) -> None:
        limit, settings = self._limit.records, self._settings.sink
        self._read_to = dict(offsets)
        self._state.reading()
        self._limit_learnt = False
        with HandOver(
            lambda gathered: self._apply(applier, gathered),
            max_records=settings.max_batch_records,
            max_bytes=settings.max_batch_bytes,
            name=f"sink-{self.name}-writer",
        ) as hand_over:
            query = KafkaQuery(
                self._spark,
                self._settings.kafka,
                offsets,
                lambda batch, ends, began: self._hand_over(hand_over, batch, ends, began, limit),
                name=self.name,
                max_records=limit,
                trigger_s=settings.trigger_s,
                scratch=make_scratch(settings.checkpoint_dir, prefix),
                max_record_bytes=self.max_record_bytes(),
            )
            log.info("%s stream: reading on, at most %d records a batch", self.name, limit)
            try:
                self._watch(applier, query, hand_over, limit, stop)
            except SmallerBatches:
                self._limit_learnt = True
                raise
            except BatchTooLarge:
                # What failed may have been less than the limit, if the log's end was known to be near: half of that is
                # what has to fit next.
                self._limit = self._limit.halved(min(limit, self._state.behind(self._read_to) or limit))
                self._limit_learnt = True
                raise
            finally:
                hand_over.close()  # the query waits for its batch, and that for room
                query.stop()
            hand_over.check()

    def _watch(
        self, applier: Applier[Any], query: KafkaQuery, hand_over: HandOver, limit: int, stop: threading.Event
    ) -> None:
        refresh_at = time.monotonic() + self._settings.sink.idle_progress_s
        ask_at = time.monotonic()
        while not self._reached_targets(applier) and not stop.wait(POLL_S):
            hand_over.check()
            if time.monotonic() >= ask_at:
                query.wait(A_MOMENT_S)
                ask_at = time.monotonic() + ASK_SPARK_S
            if time.monotonic() >= refresh_at:
                self._committed(applier.refresh(), time.monotonic())
                refresh_at = time.monotonic() + self._settings.sink.idle_progress_s
            if self._limit.should_restart(limit, self._state.behind()):
                hand_over.finish(0)
                query.stop()  # what it would read on now is dropped
                while not hand_over.finish(POLL_S):
                    if stop.is_set():
                        return
                hand_over.check()
                raise SmallerBatches(f"batches of {self._limit.records} records instead of {limit}")

    def _hand_over(
        self, hand_over: HandOver, batch: pa.Table, ends: Mapping[TopicPartition, int], began: float, limit: int
    ) -> bool:
        """Take a batch from Spark; returns whether another full one waits."""
        offsets = sum(end - self._read_to[name] for name, end in ends.items())
        self._read_to.update(ends)
        self._limit = self._limit.observed(batch.num_rows, batch.nbytes + left_out_bytes(batch), offsets, limit)
        more = self._state.behind(self._read_to) >= limit
        hand_over.put(self.condensed(batch), ends, began, more=more and self._limit.grown)
        return more

    def _apply(self, applier: Applier[Any], gathered: Gathered) -> None:
        self._committed(applier.apply(gathered.take(), gathered.ends), gathered.began)
        # What the batch took goes back now, not on top of what the next one takes.
        pa.default_memory_pool().release_unused()

    def _committed(self, applied: Applied, began: float) -> None:
        self._state.committed(applied)
        self._telemetry.batch(self.name, applied, time.monotonic() - began)
        self._on_committed(applied)

    def _reached_targets(self, applier: Applier[Any]) -> bool:
        if self._targets is None:
            return False
        positions = applier.positions
        return all(positions[name].next_offset >= end for name, end in self._targets.items() if name in positions)

    def _waiting(self) -> None:
        self._state.broken("waiting for an earlier connection of a sink to end in Postgres")


class WaitStream(SinkStream):
    """The wait topic into ``wait``."""

    name = "wait"

    def start(self, connection: Connection) -> Start:
        return wait_start(connection, self._admin, self._settings.wait)

    def require_same_topics(self, start: Start) -> None:
        require_same_wait_topic(self._admin, start.identities[0])

    def writer(self) -> Writer[Any]:
        return WaitWriter(self._settings.wait.topic)

    def largest_bytes(self) -> int:
        return self._settings.wait.max_message_bytes

    def condensed(self, batch: pa.Table) -> pa.Table:
        return condensed(batch)

    def delete_retention_ms(self) -> int | None:
        return delete_retention_ms(self._admin, self._settings.wait.topic)


class DeadLetterStream(SinkStream):
    """The dead letter topics into ``dead_letter``."""

    name = "dead_letter"

    def __init__(self, context: StreamContext, topics: list[str]) -> None:
        super().__init__(context)
        self._topics = topics

    def start(self, connection: Connection) -> Start:
        return dead_letter_start(connection, self._admin, self._topics)

    def require_same_topics(self, start: Start) -> None:
        require_same_dead_letter_topics(self._admin, start.identities)

    def writer(self) -> Writer[Any]:
        return DeadLetterWriter()

    def largest_bytes(self) -> int:
        # A record too large to be registered has become one of them.
        return PRODUCER_MAX_MESSAGE_BYTES

    def max_record_bytes(self) -> int | None:
        # Whatever was registered is shown: what a Connect source exports it goes on by.
        return max(MAX_SHOWN_BYTES, self._settings.wait.max_message_bytes + LINEAGE_BYTES)

    def delete_retention_ms(self) -> int | None:
        return None
