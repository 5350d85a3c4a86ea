"""The sink as a service: one lock, two supervised streams, telemetry."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from sink.advisory_lock import sink_lock_key, wait_for_lock
from sink.connect_group import require_no_second_sink
from sink.mirror import OffsetMirror
from sink.progress import Connection
from sink.stream import DeadLetterStream, OnCommitted, SinkStream, StreamContext, WaitStream
from sink.supervision import StreamThread
from sink.telemetry import SinkTelemetry, StreamState
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.kafka.topics import require_topics
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.postgres.error_text import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.schema import require_schema
from wait_registry.retry import Backoff
from wait_registry.settings.relations import require_relations
from wait_registry.settings.root import Settings
from wait_registry.spark.session import spark_session, stop_session
from wait_registry.start_checks import check_before_spark
from wait_registry.stop_limit import stop_limit
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.server import TelemetryServer

log = logging.getLogger(__name__)

LOCK_CHECK_S = 2.0
FIRST_PAUSE_S = 0.5
# Then its waits for Postgres are given up: those who start processes kill what hasn't ended after 30 s.
STOP_LIMIT_S = 20.0
# Of this many pauses between two signs of life, one may be missed.
SILENCE_FACTOR = 3


class SinkService:
    """`waitreg sink`: run it once; `request_stop` may be called from any thread or signal handler."""

    def __init__(self, settings: Settings, spark: SparkSession | None = None, *, once: bool = False) -> None:
        """``spark`` is a session to share, one of its own when None; ``once`` drains what is there and ends."""
        self._settings = settings
        self._spark = spark
        self._once = once
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._connections = OpenConnections()
        self._backoff = Backoff(FIRST_PAUSE_S, settings.sink.restart_backoff_max_s, random.random)
        silence_s = SILENCE_FACTOR * settings.sink.idle_progress_s
        self._states = {name: StreamState(name, silence_s) for name in (WaitStream.name, DeadLetterStream.name)}
        self.telemetry = SinkTelemetry(MetricsRegistry(), list(self._states.values()))
        self.telemetry_port: int | None = None

    def request_stop(self) -> None:
        """Ask the service to end; a batch that is being written is finished first, if that doesn't take too long."""
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        """Run until stopped (or, with ``once``, until drained).

        Raises FencedError, ConfigurationError or `sink.position.PositionTooOld` when it can't go on; anything else,
        a Postgres that is away for hours included, is waited out.
        """
        settings = self._settings
        require_relations(settings, "sink")
        # Arrow's own pool keeps what the largest batch took; malloc gives most of it back.
        pa.set_memory_pool(pa.system_memory_pool())
        # It prints the whole trace of whatever ends a batch, which is told in a line by the one who runs the stream.
        logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
        server = TelemetryServer(
            settings.telemetry.host,
            settings.telemetry.port,
            self.telemetry.registry,
            self.telemetry.live,
            self.telemetry.ready,
        )
        with server, stop_limit(STOP_LIMIT_S, self._stop, self._connections.give_up):
            self.telemetry_port = server.port
            owned = self._spark is None
            if owned:
                check_before_spark(settings, "sink", self._connections)
            spark = self._spark or spark_session(settings, "waitreg-sink")
            try:
                self._supervise(spark, open_admin(settings.kafka))
            finally:
                if owned:
                    stop_session(spark)

    def _supervise(self, spark: SparkSession, admin: Admin) -> None:
        while not self._stop.is_set():
            try:
                if self._reign(spark, admin):
                    return
            except (psycopg.Error, TransientError) as error:
                if isinstance(error, psycopg.Error | PostgresUnavailable):
                    self.telemetry.postgres(up=False)
                self._pause(error_text(error))

    def _pause(self, reason: str) -> None:
        self.telemetry.waiting(reason)
        if self._stop.is_set():
            log.warning("the sink ends, and the next one goes on where the view stands: %s", reason)
            return
        pause_s = self._backoff.next_s()
        log.warning("the sink waits %.1f s: %s", pause_s, reason)
        self._stop.wait(pause_s)

    def _reign(self, spark: SparkSession, admin: Admin) -> bool:
        """Hold the lock and run the streams; True when it is over, False when the lock was lost."""
        with self._lock() as connection:
            if connection is None:
                return True
            require_topics(self._settings, "sink")
            self._require_alone(admin)
            mirror = OffsetMirror(self._settings.kafka, self._mirror_group())
            threads = [
                self._thread(stream)
                for stream in self._streams(spark, admin, lambda applied: mirror.commit(applied.positions))
            ]
            self.telemetry.waiting(None)
            self._backoff.reset()
            try:
                for thread in threads:
                    thread.start()
                return self._watch(connection, threads)
            finally:
                _end(threads)
                for state in self._states.values():
                    state.broken("not running")
                mirror.close()

    def _require_alone(self, admin: Admin) -> None:
        settings = self._settings
        require_no_second_sink(admin, settings.kafka, settings.sink.connect_group, settings.wait.topic)

    def _watch(self, connection: Connection, threads: list[StreamThread]) -> bool:
        while not self._stop.is_set():
            self._wake.wait(LOCK_CHECK_S)
            self._wake.clear()
            for thread in threads:
                if thread.fatal is not None:
                    # The other stream may wait for a Postgres that has stalled: it ends within the limit too.
                    self._stop.set()
                    raise thread.fatal
            if all(thread.done.is_set() for thread in threads):
                return True
            # The lock lives as long as its session: a session that answers holds it.
            connection.execute("select 1")
            self.telemetry.postgres(up=True)
        return True

    @contextmanager
    def _lock(self) -> Iterator[Connection | None]:
        with self._connections.open(self._settings.postgres, "waitreg sink lock") as held:
            self.telemetry.postgres(up=True)
            require_schema(held)
            key = sink_lock_key(held, self._settings.wait.topic)
            yield held if wait_for_lock(held, key, self._stop, self._standby) else None

    def _standby(self) -> None:
        self.telemetry.waiting("standby")
        log.debug("another sink holds the lock: standing by")

    def _streams(self, spark: SparkSession, admin: Admin, on_committed: OnCommitted) -> list[SinkStream]:
        def context(name: str) -> StreamContext:
            return StreamContext(
                self._settings,
                spark,
                admin,
                self._connections,
                self.telemetry,
                self._states[name],
                on_committed,
                self._once,
            )

        topics = dead_letter_topics(self._settings, "sink")
        return [WaitStream(context(WaitStream.name)), DeadLetterStream(context(DeadLetterStream.name), topics)]

    def _mirror_group(self) -> str:
        return self._settings.sink.offset_group or f"waitreg.sink.{self._settings.wait.topic}"

    def _thread(self, stream: SinkStream) -> StreamThread:
        backoff = Backoff(FIRST_PAUSE_S, self._settings.sink.restart_backoff_max_s, random.random)
        return StreamThread(
            stream.name, stream.run_once, self._states[stream.name], self.telemetry, backoff, self._wake
        )


def _end(threads: list[StreamThread]) -> None:
    for thread in threads:
        thread.request_stop()
    for thread in threads:
        thread.join()
