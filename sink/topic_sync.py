"""One topic on its way into Postgres: plans and reads ranges of it, and applies what they held."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from sink.apply.applier import Applied, Applier
from sink.position import LogEnds, TopicPartition
from sink.progress import Connection
from sink.read.batch_reader import BatchReader
from sink.read.kafka_reader import Batch, RangeReader, ReadFailed
from sink.read.log_ends import is_within_log, log_ends, stable_ends
from sink.topics import SinkTopic
from wait_registry.errors import TransientError
from wait_registry.settings.sink import SinkSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a topic; ``began`` is the monotonic clock's, s."""

    batch: Batch
    began: float


class DeletedUnread(TransientError):
    """Records were deleted before they were read: start this topic again, which says so."""


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
        self._reader = BatchReader(reader, settings, topic.largest_bytes)
        self._pause_s = settings.poll_interval_s
        start = topic.start(connection)
        self._identity = start.identity
        self.passed = start.passed
        self._connection = connection
        self._read_to = {name: position.next_offset for name, position in start.positions.items()}
        whole_from = topic.begin(start, self._list_ends())
        self.delete_retention_ms = topic.delete_retention_ms()
        self._applier = Applier(
            connection,
            topic.writer,
            start.positions,
            self._list_ends,
            delete_retention_ms=self.delete_retention_ms,
            whole_from=whole_from,
        )

    def read(self) -> Read | None:
        """Plan and read the next ranges; None if there is nothing to read now.

        Raises what `BatchReader.read` raises, ConfigurationError or TransientError if the topic changed, and
        `DeletedUnread`.
        """
        began = time.monotonic()
        self.topic.require_same(self._identity)
        ends = stable_ends(self.topic.admin, self._read_to)
        if self._is_behind(ends):
            self._require_within_log()
        try:
            batch = self._reader.read(self._read_to, ends)
        except ReadFailed:
            self._require_within_log()
            raise
        self.due_at = began + self._pause_s
        if batch is None:
            return None
        log.debug("%s: read %d records up to %s", self.topic.name, batch.records.num_rows, batch.next_positions)
        self._read_to.update(batch.next_positions)
        if self._is_behind(ends):
            # At once, after those that have waited for longer.
            self.due_at = began
        return Read(batch, began)

    def _is_behind(self, ends: Mapping[TopicPartition, int]) -> bool:
        return any(ends[name] > offset for name, offset in self._read_to.items())

    def _require_within_log(self) -> None:
        if not is_within_log(self.topic.admin, self._read_to):
            raise DeletedUnread(f"{self.topic.name}: records were deleted before they were read")

    def _list_ends(self) -> LogEnds:
        self.topic.require_same(self._identity)
        return log_ends(self._connection, self.topic.admin, self._read_to)

    def apply(self, batch: Batch) -> Applied:
        """Write what was read; errors as `Applier.apply`."""
        try:
            return self._applier.apply(batch.records, batch.next_positions)
        finally:
            # What the batch took is released now, before the next batch takes as much.
            pa.default_memory_pool().release_unused()

    def refresh(self) -> Applied:
        """Write that idle positions are still the log's ends, and what the topic has to write by time.

        Errors as `Applier.apply`.
        """
        self.topic.write_by_time(self._connection)
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
