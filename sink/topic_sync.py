"""One topic on its way into Postgres: plans and reads ranges of it, and applies what they held."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from sink.apply.applier import Applied, Applier
from sink.position import TopicPartition, whole_from
from sink.progress import Connection
from sink.read.batch import omitted_bytes
from sink.read.kafka_reader import Batch, BatchTooLarge, RangeReader
from sink.read.log_ends import log_ends, stable_ends
from sink.read.ranges import Ranges, ReadLimit, offsets_of, plan
from sink.topics import SinkTopic
from wait_registry.settings.sink import SinkSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a topic; ``began`` is the monotonic clock's, s."""

    sync: TopicSync
    batch: Batch
    began: float


class TopicSync:
    """Reads a topic from the positions in Postgres on, and applies what it read.

    `read` may run in another thread than the rest, one read at a time.
    """

    def __init__(self, topic: SinkTopic, reader: RangeReader, settings: SinkSettings, connection: Connection) -> None:
        """Start where Postgres says, over a connection in autocommit.

        Raises:
            ConfigurationError: the topic isn't as it must be.
            psycopg.Error, TransientError: Postgres or Kafka can't be reached now; retry.
        """
        self.topic = topic
        self.due_at = 0.0
        self._reader = reader
        self._pause_s = settings.poll_interval_s
        self._limit = ReadLimit.careful(settings.max_batch_records, settings.max_batch_bytes, topic.largest_bytes)
        start = topic.start(connection)
        self._identity = start.identity
        self._read_to = {name: position.next_offset for name, position in start.positions.items()}
        topic.targets = topic.targets or stable_ends(topic.admin, self._read_to)
        topic.whole_from = whole_from(
            start.positions, start.new, log_ends(connection, topic.admin, self._read_to), topic.whole_from
        )
        self.delete_retention_ms = topic.delete_retention_ms()
        self._applier = Applier(
            connection,
            topic.writer,
            start.positions,
            list_ends=lambda: log_ends(connection, topic.admin, start.positions),
            require_same_topics=lambda: topic.require_same(start.identity),
            delete_retention_ms=self.delete_retention_ms,
            whole_from=topic.whole_from,
        )

    def read(self) -> Read | None:
        """Plan and read the next ranges; None if there is nothing to read now.

        Raises what `RangeReader.read` raises, ConfigurationError or TransientError if the topic changed.
        """
        began = time.monotonic()
        self.topic.require_same(self._identity)
        ends = stable_ends(self.topic.admin, self._read_to)
        batch: Batch | None = None
        ranges: Ranges = plan(self._read_to, ends, self._limit.offsets)
        while ranges and batch is None:
            batch, ranges = self._fetch(ranges, ends)
        self.due_at = began + self._pause_s
        if batch is None:
            return None
        log.debug("%s: read %d records up to %s", self.topic.name, batch.records.num_rows, batch.next_positions)
        self._read_to.update(batch.next_positions)
        nbytes = batch.records.nbytes + omitted_bytes(batch.records)
        self._limit = self._limit.after(offsets_of(ranges), batch.records.num_rows, nbytes)
        if any(ends[name] > offset for name, offset in self._read_to.items()):
            # At once, after those that have waited for longer.
            self.due_at = began
        return Read(self, batch, began)

    def _fetch(self, ranges: Ranges, ends: Mapping[TopicPartition, int]) -> tuple[Batch | None, Ranges]:
        """Read ranges; if they hold too much, return smaller ones instead."""
        try:
            return self._reader.read(ranges), ranges
        except BatchTooLarge as error:
            smaller = self._limit.halved(offsets_of(ranges))
            if smaller is None:
                raise
            log.warning("%s: %s: reading %d offsets at once from here on", self.topic.name, error, smaller.offsets)
            self._limit = smaller
            return None, plan(self._read_to, ends, smaller.offsets)

    def apply(self, batch: Batch) -> Applied:
        """Write what was read; errors as `Applier.apply`."""
        try:
            return self._applier.apply(batch.records, batch.next_positions)
        finally:
            # What the batch took is released now, before the next batch takes as much.
            pa.default_memory_pool().release_unused()

    def refresh(self) -> Applied:
        """Write that idle positions are still the log's ends; errors as `Applier.apply`."""
        return self._applier.refresh()

    @property
    def is_level(self) -> bool:
        """Whether everything that was read is in Postgres; ask while no read is under way."""
        return all(self._applier.positions[name].next_offset == offset for name, offset in self._read_to.items())

    @property
    def reached_targets(self) -> bool:
        """Whether what was in the topic at the first start is in Postgres."""
        positions = self._applier.positions
        return all(positions[name].next_offset >= end for name, end in self.topic.targets.items() if name in positions)
