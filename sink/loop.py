"""The sink's loop: plan, read, compact, apply, confirm. The next ranges are read while a batch is applied."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeAlias

from sink.apply.applier import Applied
from sink.metrics import SinkTelemetry
from sink.position import Positions
from sink.progress import Connection
from sink.read.kafka_reader import RangeReader
from sink.topic_sync import DeletedUnread, Read, TopicSync
from sink.topics import SinkTopic, SinkTopics
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.settings.sink import SinkSettings

log = logging.getLogger(__name__)

POLL_S = 0.25


# What one iteration of the reading thread found of each topic that was due: a batch, of one topic at most, nothing that
# is left to read, or why the topic can't be read.
Found: TypeAlias = list[tuple[TopicSync, Read | Exception | None]]


class SinkLoop:
    """Brings topics into Postgres over one connection that holds the sink's lock.

    A topic other than the first that can't be read is reported and skipped for a while: it never stops the first one.
    What Postgres refuses, or Kafka for the first topic, ends the loop with its error. The service repeats the loop.
    """

    def __init__(
        self,
        settings: SinkSettings,
        connection: Connection,
        topics: SinkTopics,
        readers: Mapping[str, RangeReader],
        telemetry: SinkTelemetry,
        confirm: Callable[[Positions], None],
    ) -> None:
        """Prepare; reads nothing.

        Args:
            settings: of the sink.
            connection: in autocommit; it holds the sink's lock.
            topics: what is read.
            readers: for each topic, by its name.
            telemetry: counts and shows what happens.
            confirm: called with the committed positions.
        """
        self._settings = settings
        self._connection = connection
        self._topics = topics
        self._readers = readers
        self._telemetry = telemetry
        self._confirm = confirm
        self._syncs: dict[str, TopicSync] = {}
        self._skipped_until: dict[str, float] = {}
        self._refresh_at = time.monotonic() + settings.idle_progress_s
        self._stopping = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set or `SinkTopics.once` ends it.

        Raises:
            Exception: that of Postgres, or of the first topic.
        """
        self._open_due()
        with ThreadPoolExecutor(1, "sink-reader") as executor:
            reading = executor.submit(self._read)
            try:
                while not stop.is_set() and not (self._topics.once and self._drained):
                    wait([reading], POLL_S)
                    self._refresh_due()
                    if reading.done():
                        reading = self._iterate(reading.result(), executor)
            finally:
                self._stopping.set()
                self._cancel(reading)

    def _iterate(self, found: Found, executor: ThreadPoolExecutor) -> Future[Found]:
        """Begin the next read, and apply the one that ended; nothing is read while topics are opened and skipped."""
        for sync, result in found:
            if isinstance(result, DeletedUnread):
                self._syncs.pop(sync.topic.name, None)
            elif isinstance(result, Exception):
                self._skip(sync.topic, result)
            elif result is None and sync.is_level:
                sync.topic.state.caught_up()
        self._open_due()
        reading = executor.submit(self._read)
        for sync, result in found:
            if isinstance(result, Read) and sync in self._syncs.values():
                with self._skipping(sync.topic):
                    self._committed(sync.topic, sync.apply(result.batch), time.monotonic() - result.began)
        return reading

    def _read(self) -> Found:
        """Read one range of the first topic that has something; runs in the reading thread."""
        found: Found = []
        now = time.monotonic()
        for sync in sorted([*self._syncs.values()], key=lambda each: each.due_at):
            if sync.due_at > now:
                continue
            try:
                found.append((sync, sync.read()))
            except (TransientError, ConfigurationError) as error:
                if sync.topic is self._topics.first and not isinstance(error, DeletedUnread):
                    raise
                found.append((sync, error))
            if isinstance(found[-1][1], Read):
                return found
        if all(result is None for _, result in found):
            self._readers[self._topics.first.name].require_alive()
            due_at = min((sync.due_at for sync in [*self._syncs.values()]), default=now + POLL_S)
            self._stopping.wait(max(0.0, due_at - time.monotonic()))
        return found

    def _open_due(self) -> None:
        for topic in self._topics.all():
            if topic.name not in self._syncs and time.monotonic() >= self._skipped_until.get(topic.name, 0.0):
                with self._skipping(topic):
                    self._open(topic)

    def _open(self, topic: SinkTopic) -> None:
        sync = TopicSync(topic, self._readers[topic.name], self._settings, self._connection)
        self._telemetry.passed(topic.name, sync.passed)
        # Before the first record is read: a position that is too old is refused.
        self._committed(topic, sync.refresh(), 0.0)
        self._syncs[topic.name] = sync
        topic.state.reading(sync.delete_retention_ms)

    def _refresh_due(self) -> None:
        if time.monotonic() < self._refresh_at:
            return
        self._refresh_at = time.monotonic() + self._settings.idle_progress_s
        for sync in list(self._syncs.values()):
            with self._skipping(sync.topic):
                self._committed(sync.topic, sync.refresh(), 0.0)

    def _committed(self, topic: SinkTopic, applied: Applied, seconds: float) -> None:
        self._telemetry.committed(topic.state, applied, seconds)
        self._confirm(applied.positions)
        if applied.written is not None:
            topic.backoff.reset()

    @contextmanager
    def _skipping(self, topic: SinkTopic) -> Iterator[None]:
        try:
            yield
        except (TransientError, ConfigurationError) as error:
            self._skip(topic, error)

    def _skip(self, topic: SinkTopic, error: Exception) -> None:
        """Skip a topic for a while; raises the error if that is no way to continue."""
        final = self._topics.once and isinstance(error, ConfigurationError)
        if final or topic is self._topics.first or isinstance(error, PostgresUnavailable):
            raise error
        self._syncs.pop(topic.name, None)
        pause_s = topic.backoff.next_s()
        self._skipped_until[topic.name] = time.monotonic() + pause_s
        self._telemetry.failed(topic.state, error)
        log.warning("%s is skipped for %.1f s, the wait topic is still read: %s", topic.name, pause_s, error)

    @property
    def _drained(self) -> bool:
        syncs = [self._syncs.get(topic.name) for topic in self._topics.all()]
        return all(sync is not None and sync.reached_targets for sync in syncs)

    def _cancel(self, reading: Future[Found]) -> None:
        """End a read that is under way: what it reads is dropped, and read again from the positions in Postgres."""
        if not reading.cancel() and not reading.done():
            for reader in self._readers.values():
                reader.cancel()
