"""The sink as a service: one lock, one loop, one retry around it, telemetry."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from sink.advisory_lock import wait_for_lock
from sink.connect_group import require_no_second_sink
from sink.loop import SinkLoop
from sink.metrics import SinkTelemetry
from sink.mirror import OffsetMirror
from sink.position import PositionExpired
from sink.progress import Connection
from sink.read.kafka_reader import SparkReader
from sink.topics import sink_topics
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.kafka.topics import require_topics
from wait_registry.outage import through_outage
from wait_registry.postgres.connection import PostgresUnavailable, lift_time_limits
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.schema import require_schema
from wait_registry.service.start_checks import check_before_spark
from wait_registry.service.stop_limit import stop_limit
from wait_registry.settings.relations import require_relations
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from wait_registry.spark import SparkGone, StartStopped
from wait_registry.spark.session import require_spark, session_of
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.server import service_server

log = logging.getLogger(__name__)

# Then the waits for Postgres are given up: supervisors kill what hasn't ended after 30 s.
STOP_LIMIT_S = 20.0
FATAL = (FencedError, ConfigurationError, PositionExpired, SparkGone)


class SinkService:
    """`waitreg sink`: run it once; `request_stop` may be called from any thread or signal handler."""

    def __init__(self, settings: Settings, spark: SparkSession | None = None, *, once: bool = False) -> None:
        """Check the settings; nothing is opened yet.

        Args:
            settings: of the sink.
            spark: a session to share instead of an own one.
            once: drain what is there, and end.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        require_relations(settings, "sink")
        self._settings = settings
        self._spark = spark
        self._stop = threading.Event()
        self._connections = OpenConnections()
        self._topics = sink_topics(settings, once)
        self.telemetry = SinkTelemetry(MetricsRegistry(), [topic.state for topic in self._topics.all()])
        for topic in self._topics.all():
            # A counter that begins with its first increase would hide it from alerts.
            self.telemetry.passed(topic.name, 0)
        self._stands_by = False

    def request_stop(self) -> None:
        """Ask the service to end; a batch that is being written is finished first, if that doesn't take too long."""
        self._stop.set()

    def run(self) -> None:
        """Run until stopped (or, with ``once``, until drained).

        An outage, a Postgres that is away for hours included, is waited out.

        Raises:
            ConfigurationError, PositionExpired: fix what the message says, then start again.
            FencedError: another sink has written; stop one of them.
            SparkGone: start again.
        """
        settings = self._settings
        # Arrow's own pool keeps what the largest batch took; malloc gives most of it back.
        pa.set_memory_pool(pa.system_memory_pool())
        telemetry = self.telemetry
        server = service_server(settings, "sink", telemetry.registry, telemetry.live, telemetry.ready)
        with server, stop_limit(STOP_LIMIT_S, self._stop, self._connections.give_up):
            if self._spark is None:
                check_before_spark(settings, "sink", self._connections)
            self.telemetry.waiting("starting Spark")
            with suppress(StartStopped), session_of(settings, "waitreg-sink", self._spark, self._stop) as spark:
                self.telemetry.waiting("waiting for Postgres")
                # Whatever the error is: nothing is lost, and the work starts again.
                through_outage(partial(self._work, spark), self._pause_s, self._stop.wait, (Exception,))

    def _pause_s(self, error: Exception) -> float | None:
        """Report why the work failed; return how long to wait, s, or None if only an operator can fix it."""
        reason = error_text(error)
        if isinstance(error, FATAL):
            self.telemetry.broken(str(error))
            return None
        if isinstance(error, psycopg.OperationalError | PostgresUnavailable):
            self.telemetry.postgres(up=False)
        if self._stop.is_set():
            log.warning("the sink ends; the next start reads again what wasn't written: %s", reason)
            return 0.0
        self.telemetry.broken(reason)
        self.telemetry.failed(self._topics.first.state, error)
        self.telemetry.waiting(reason)
        pause_s = self._topics.first.backoff.next_s()
        # The trace of an outage or of Spark's own error says nothing, and that of a refusal by Postgres ends with the
        # rows that were refused; that of anything else may be all there is.
        known = isinstance(error, psycopg.Error | TransientError)
        log.warning("the sink failed (%s); starts again in %.1f s", reason, pause_s, exc_info=None if known else error)
        return pause_s

    def _work(self, spark: SparkSession) -> None:
        """Bring the topics into Postgres until stopped, from the positions in Postgres on."""
        if self._stop.is_set():
            return
        require_spark(spark)
        settings, topics = self._settings, self._topics
        with self._lock(spark) as connection:
            if connection is None:
                return
            require_topics(settings, "sink")
            if settings.sink.kind is SinkKind.SPARK:
                group = settings.sink.connect_group
                require_no_second_sink(topics.first.admin, settings.kafka, group, settings.wait.topic)
            readers = {topic.name: SparkReader(spark, settings.kafka, topic.columns) for topic in topics.all()}
            group = settings.sink.offset_group or f"waitreg.sink.{settings.wait.topic}"
            with closing(OffsetMirror(settings.kafka, group)) as mirror:
                self.telemetry.waiting(None)
                loop = SinkLoop(settings.sink, connection, topics, readers, self.telemetry, mirror.commit)
                loop.run(self._stop)

    @contextmanager
    def _lock(self, spark: SparkSession) -> Iterator[Connection | None]:
        """Open the connection that writes, and hold the lock as long as its session lives; None if stopped before.

        The server ends a session, and frees its lock, when nothing of it is left to be committed. So the holder of
        the lock sees all that an earlier sink wrote.
        """
        with self._connections.open(self._settings.postgres, "waitreg sink") as connection:
            self.telemetry.postgres(up=True)
            require_schema(connection)
            connection.execute("set synchronous_commit to on")
            lift_time_limits(connection)
            standby = partial(self._standby, spark)
            locked = wait_for_lock(connection, self._settings.wait.topic, self._stop, standby)
            self._stands_by = False
            yield connection if locked else None

    def _standby(self, spark: SparkSession) -> None:
        # One that couldn't take over must end now.
        require_spark(spark)
        if not self._stands_by:
            log.info("another sink, or a session that a pooler has kept, holds the lock: waiting as a standby")
        self._stands_by = True
        self.telemetry.waiting("standby")
