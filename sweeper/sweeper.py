"""The sweeper: `run_once` looks for what is due and has it exported; a schedule calls it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES, find_due
from sweeper.instruments import Instruments
from sweeper.partition_result import PartitionResult, Skip
from sweeper.purge import ROWS_AT_ONCE, purge
from sweeper.spark_job import Job
from sweeper.sweep import Sweep, SweepResult, swept
from sweeper.sweep_table import record_sweep
from sweeper.view import UNAVAILABLE
from sweeper.wait_topic import WaitTopic, look_up, recorded, require_recorded
from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import require_same_identity
from wait_registry.kafka.topics import require_topics
from wait_registry.postgres.connection import PostgresUnavailable, lift_time_limits
from wait_registry.postgres.error_text import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind

log = logging.getLogger(__name__)

IDENTITY_CHECK_S = 30.0
PURGE_INTERVAL_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of looking for due rows; ``result`` is None when the partitions' results decide it."""

    due: int = 0
    partitions: Sequence[PartitionResult] = ()
    result: SweepResult | None = None
    reason: str = ""


class Sweeper:
    """Sweeps when told to; keeps a connection to Postgres and what it knows of the wait topic between sweeps."""

    def __init__(
        self,
        settings: Settings,
        job: Job,
        instruments: Instruments,
        instance: str = "",
        clock: Clock | None = None,
        connections: OpenConnections | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            settings: of the sweeper.
            job: sweeps partitions that have rows due.
            instruments: where sweeps are reported.
            instance: this process's name in the sweep table.
            clock: for durations and intervals; what is due is the decision of Postgres' clock.
            connections: those of the service, to be given up with it.
        """
        self._settings = settings
        self._job = job
        self._instruments = instruments
        self._instance = instance
        self._clock = clock or SystemClock()
        self._admin = admin(settings.kafka)
        self._connections = connections or OpenConnections()
        self._held = ExitStack()
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._topic: WaitTopic | None = None
        self._look_up_at = 0.0
        self._purge_at = 0.0

    def run_once(self) -> Sweep:
        """Sweep once.

        Returns:
            What was done; its result is ``failed`` when Postgres or Kafka is away, the next sweep may do better.

        Raises:
            ConfigurationError: a topic or the schema isn't as it must be; the process must end.
            SparkGone: the process must end.
        """
        started, started_at = self._clock.monotonic(), datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        try:
            attempt = self._attempt()
        except (TransientError, *UNAVAILABLE) as error:
            if isinstance(error, (PostgresUnavailable, *UNAVAILABLE)):
                self._disconnect()
            attempt = _Attempt(result=SweepResult.FAILED, reason=error_text(error))
        duration_s = self._clock.monotonic() - started
        sweep = swept(self._settings.wait.topic, started_at, duration_s, attempt.due, attempt.partitions)
        if attempt.result is not None:
            sweep = sweep.ended(attempt.result, attempt.reason)
        self._instruments.swept(sweep)
        self._keep_house(sweep)
        _require_no_refusal(sweep)
        return sweep

    def close(self) -> None:
        """Let go of the connection."""
        self._disconnect()

    def _attempt(self) -> _Attempt:
        connection = self._connected()
        with self._lock(connection) as ours:
            if not ours:
                return _Attempt(result=SweepResult.SKIPPED, reason="another sweep")
            topic = self._wait_topic(connection)
            due = find_due(connection, self._settings, topic.identity.partitions)
            self._instruments.due(due.rows, due.oldest, datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC))
            if not due.partitions:
                return _Attempt()
            self._look_up_at = 0.0
            results = self._job(self._settings, self._wait_topic(connection), due.partitions)
            self._instruments.left_out(self._settings.wait.topic, results)
            return _Attempt(due.rows, results)

    def _connected(self) -> psycopg.Connection[TupleRow]:
        if self._connection is None:
            opening = self._connections.open(self._settings.postgres, "waitreg-sweeper")
            self._connection = self._held.enter_context(opening)
            require_schema(self._connection)
            # Counting and purging take as long as much is due: cut off, they would never be done.
            lift_time_limits(self._connection)
            self._instruments.postgres(up=True)
        return self._connection

    def _disconnect(self) -> None:
        self._connection = None
        self._held.close()
        self._instruments.postgres(up=False)

    @contextmanager
    def _lock(self, connection: psycopg.Connection[TupleRow]) -> Iterator[bool]:
        """Try to be the only sweep; for progress only, exactness is the fence's."""
        name = {"topic": self._settings.wait.topic}
        row = connection.execute(QUERIES["try_lock"], name).fetchone()
        ours = bool(row and row[0])
        try:
            yield ours
        finally:
            if ours:
                self._unlock(connection, name)

    def _unlock(self, connection: psycopg.Connection[TupleRow], name: dict[str, str]) -> None:
        """Give the lock back; a connection that is lost, or is given up for that, has done so."""
        try:
            connection.execute(QUERIES["unlock"], name)
        except psycopg.Error as error:
            # Neither what the sweep did nor why it failed is less true for that.
            log.warning("the sweep's lock could not be given back, its connection is given up: %s", error_text(error))
            self._disconnect()

    def _wait_topic(self, connection: psycopg.Connection[TupleRow]) -> WaitTopic:
        """Return the wait topic, checked against what was recorded within the last `IDENTITY_CHECK_S`."""
        known = self._topic
        if known is not None and self._clock.monotonic() < self._look_up_at:
            return known
        if known is None:
            require_topics(self._settings, "sweeper")
        topic = look_up(self._admin, self._settings.wait)
        if known is not None:
            require_same_identity(known.identity, topic.identity)
        # What a sink of ours left behind says nothing about a view that a Connect sink keeps.
        if self._settings.sink.kind is SinkKind.SPARK:
            found = recorded(connection, self._settings.wait.topic)
            require_recorded(found, topic.identity)
            if found:
                self._instruments.view(max(record.staleness_s for record in found), topic.delete_retention_ms)
        self._topic, self._look_up_at = topic, self._clock.monotonic() + IDENTITY_CHECK_S
        return topic

    def _keep_house(self, sweep: Sweep) -> None:
        """Write the sweep down and purge what is old; neither is worth more than a warning when it fails."""
        if self._connection is None:
            return
        try:
            record_sweep(self._connection, sweep, self._instance)
            if self._clock.monotonic() >= self._purge_at:
                rows = purge(self._connection, self._settings.sweeper.retention_days)
                self._instruments.purged(rows)
                more = max(rows.values()) >= ROWS_AT_ONCE
                self._purge_at = self._clock.monotonic() + (0.0 if more else PURGE_INTERVAL_S)
        except psycopg.Error as error:
            # A server that has become a standby refuses writes; a new connection may find the one that takes them.
            log.warning("the sweep could not be written down: %s", error_text(error))
            self._disconnect()


def _require_no_refusal(sweep: Sweep) -> None:
    """End the process over what only a person mends; the other partitions have been swept by now."""
    refused = [skipped.reason for skipped in sweep.skipped if skipped.skip in (Skip.TOPIC_CHANGED, Skip.REFUSED)]
    if refused:
        raise ConfigurationError(refused[0])
