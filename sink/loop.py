"""The sink's loop: plan, read, compact, apply, confirm. The next ranges are read while a batch is applied."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from sink.apply.applier import Applied
from sink.progress import Connection
from sink.read.kafka_reader import RangeReader
from sink.telemetry import SinkTelemetry, StreamState
from sink.topic_stream import Read, SinkTopic, TopicStream
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.retry import Backoff
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

POLL_S = 0.25


@dataclass(slots=True)
class Step:
    """What one turn of the reading thread came to: one batch at most, and which topics had nothing or failed."""

    read: Read | None = None
    idle: list[TopicStream] = field(default_factory=list)
    failed: list[tuple[TopicStream, Exception]] = field(default_factory=list)


class SinkLoop:
    """Brings topics into Postgres over one connection that holds the sink's lock.

    A topic other than the first, the wait topic, that can't be read is reported and skipped for a while: it never
    stops the wait topic. What Postgres refuses, or Kafka for the wait topic, ends the loop with its error.
    """

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        topics: Sequence[SinkTopic],
        readers: Mapping[str, RangeReader],
        telemetry: SinkTelemetry,
        backoffs: Mapping[str, Backoff],
        confirm: Callable[[Applied], None],
    ) -> None:
        """Describe it.

        Args:
            settings: of the sink.
            connection: in autocommit; it holds the sink's lock.
            topics: the wait topic, then the others.
            readers: for each `SinkTopic.stream`.
            telemetry: counts and shows what happens.
            backoffs: for each topic that may be skipped, how long.
            confirm: called with what was committed.
        """
        self._settings = settings
        self._connection = connection
        self._topics = topics
        self._readers = readers
        self._telemetry = telemetry
        self._backoffs = backoffs
        self._confirm = confirm
        self._streams: dict[str, TopicStream] = {}
        self._skipped_until: dict[str, float] = {}
        self._refresh_at = time.monotonic() + settings.sink.idle_progress_s
        self._stopping = threading.Event()

    def run(self, stop: threading.Event, *, once: bool) -> None:
        """Run until ``stop`` is set or, with ``once``, all that was in the topics at the first start is in Postgres.

        Raises what ended it.
        """
        self._open_due(once)
        with ThreadPoolExecutor(1, "sink-reader") as executor:
            reading = executor.submit(self._read)
            try:
                while not stop.is_set() and not (once and self._drained):
                    wait([reading], POLL_S)
                    self._refresh_due()
                    if reading.done():
                        reading = self._turn(reading.result(), executor, once)
            finally:
                self._stopping.set()
                self._cancel(reading)

    def _turn(self, step: Step, executor: ThreadPoolExecutor, once: bool) -> Future[Step]:
        """Begin the next read, and apply the one that ended; nothing is read while topics are opened and skipped."""
        for stream, error in step.failed:
            self._skip(stream.topic, error, once)
        for stream in step.idle:
            if stream.is_level:
                self._state(stream.topic).caught_up()
        self._open_due(once)
        reading = executor.submit(self._read)
        if step.read is not None and step.read.stream in self._streams.values():
            self._apply(step.read, once)
        return reading

    def _read(self) -> Step:
        """Read one range of the first topic that has something; runs in the reading thread."""
        step, now = Step(), time.monotonic()
        for stream in sorted([*self._streams.values()], key=lambda each: each.due_at):
            if stream.due_at > now:
                continue
            try:
                step.read = stream.read()
            except (TransientError, ConfigurationError) as error:
                if stream.topic is self._topics[0]:
                    raise
                step.failed.append((stream, error))
                continue
            if step.read is not None:
                return step
            step.idle.append(stream)
        if not step.failed:
            self._readers["wait"].require_alive()
            due_at = min((stream.due_at for stream in [*self._streams.values()]), default=now + POLL_S)
            self._stopping.wait(max(0.0, due_at - time.monotonic()))
        return step

    def _apply(self, read: Read, once: bool) -> None:
        topic = read.stream.topic
        try:
            self._committed(topic, read.stream.apply(read.batch), time.monotonic() - read.began)
        except (TransientError, ConfigurationError) as error:
            self._skip(topic, error, once)

    def _open_due(self, once: bool) -> None:
        for topic in self._topics:
            if topic.topic not in self._streams and time.monotonic() >= self._skipped_until.get(topic.topic, 0.0):
                try:
                    self._open(topic)
                except (TransientError, ConfigurationError) as error:
                    self._skip(topic, error, once)

    def _open(self, topic: SinkTopic) -> None:
        stream = TopicStream(topic, self._readers[topic.stream], self._connection)
        self._state(topic).bounded(stream.delete_retention_ms)
        # Before the first record is read: a position that is too old is refused.
        self._committed(topic, stream.refresh(), 0.0)
        self._streams[topic.topic] = stream
        self._state(topic).reading()

    def _refresh_due(self) -> None:
        if time.monotonic() < self._refresh_at:
            return
        self._refresh_at = time.monotonic() + self._settings.sink.idle_progress_s
        for stream in list(self._streams.values()):
            try:
                self._committed(stream.topic, stream.refresh(), 0.0)
            except (TransientError, ConfigurationError) as error:
                self._skip(stream.topic, error, once=False)

    def _committed(self, topic: SinkTopic, applied: Applied, seconds: float) -> None:
        self._state(topic).committed(applied)
        self._telemetry.postgres(up=True)
        self._telemetry.batch(topic.stream, applied, seconds)
        self._confirm(applied)
        if applied.written is not None:
            self._backoffs[topic.topic].reset()

    def _skip(self, topic: SinkTopic, error: Exception, once: bool) -> None:
        """Leave a topic out for a while; raises the error if that is no way to continue."""
        if topic is self._topics[0] or isinstance(error, PostgresUnavailable):
            raise error
        if once and isinstance(error, ConfigurationError):
            raise error
        self._streams.pop(topic.topic, None)
        pause_s = self._backoffs[topic.topic].next_s()
        self._skipped_until[topic.topic] = time.monotonic() + pause_s
        self._telemetry.failed(topic.topic, topic.stream, error)
        log.warning("%s is skipped for %.1f s, the wait topic is still read: %s", topic.topic, pause_s, error)

    def _state(self, topic: SinkTopic) -> StreamState:
        return self._telemetry.state(topic.topic)

    @property
    def _drained(self) -> bool:
        return len(self._streams) == len(self._topics) and all(
            stream.reached_targets for stream in self._streams.values()
        )

    def _cancel(self, reading: Future[Step]) -> None:
        """End a read that is under way: what it reads is dropped, and read again from the positions in Postgres."""
        if reading.cancel() or reading.done():
            return
        for reader in self._readers.values():
            reader.cancel()
