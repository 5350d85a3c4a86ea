"""One sweep: find the due rows, have the job export them, record what was done. A schedule calls `run_once`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES, find_due
from sweeper.housekeeping import ROWS_AT_ONCE, marks_days, purge, record_sweep
from sweeper.metrics import Instruments
from sweeper.result import PartitionResult, Skip, Sweep, SweepResult
from sweeper.snapshot import UNAVAILABLE
from sweeper.tables_policy import OUR_SINK, Scope, TablesPolicy
from sweeper.wait_topic import WaitTopic, look_up
from wait_registry.clock import SystemClock
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import require_same_identity
from wait_registry.kafka.topics import require_topics
from wait_registry.postgres.connection import PostgresUnavailable, lift_time_limits
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

IDENTITY_CHECK_S = 30.0
PURGE_INTERVAL_S = 3600.0

Job = Callable[[Scope, Sequence[int]], list[PartitionResult]]


class Sweeper:
    """Sweeps at each call; keeps a connection to Postgres and what it knows of the wait topic between sweeps."""

    def __init__(
        self,
        settings: Settings,
        job: Job,
        instruments: Instruments,
        instance: str = "",
        connections: OpenConnections | None = None,
        tables: TablesPolicy = OUR_SINK,
    ) -> None:
        """Open nothing yet.

        Args:
            settings: of the sweeper.
            job: sweeps the partitions that have due rows.
            instruments: where sweeps are reported.
            instance: this process's name in the sweep table.
            connections: those of the service, to be given up with it.
            tables: what may be assumed of the tables.
        """
        self._settings = settings
        self._job = job
        self._instruments = instruments
        self._instance = instance
        # For durations and intervals; the clock of Postgres decides which rows are due.
        self._clock = SystemClock()
        self._admin = admin(settings.kafka)
        self._connections = connections or OpenConnections()
        self._tables = tables
        self._held = ExitStack()
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._topic: WaitTopic | None = None
        self._look_up_at = 0.0
        self._purge_at = 0.0

    def run_once(self) -> Sweep:
        """Sweep once.

        Returns:
            What was done; its result is ``failed`` when Postgres or Kafka is unavailable, the next sweep tries again.

        Raises:
            ConfigurationError: a topic or the schema is wrong; the process must end.
            SparkGone: the process must end.
        """
        began_s, sweep = self._clock.monotonic(), Sweep(self._settings.wait.topic, self._now())
        log.debug("a sweep of %s starts", sweep.wait_topic)
        try:
            sweep = self._sweep(sweep)
        except (TransientError, *UNAVAILABLE) as error:
            if isinstance(error, (PostgresUnavailable, *UNAVAILABLE)):
                self.close()
            sweep = replace(sweep, unswept=SweepResult.FAILED, reason=error_text(error))
        sweep = replace(sweep, duration_s=self._clock.monotonic() - began_s)
        self._instruments.swept(sweep)
        self._record(sweep)
        _require_no_refusal(sweep)
        return sweep

    def close(self) -> None:
        """Close the connection; the next sweep opens another one."""
        self._connection = None
        self._held.close()
        self._instruments.postgres(up=False)

    def _sweep(self, sweep: Sweep) -> Sweep:
        connection = self._connected()
        with self._lock(connection) as ours:
            if not ours:
                return replace(sweep, unswept=SweepResult.SKIPPED, reason="another sweep")
            topic = self._wait_topic(connection)
            due = find_due(connection, self._settings, topic.identity.partitions)
            self._instruments.due(due, self._now())
            if not due.partitions:
                return sweep
            self._look_up_at = 0.0
            scope = Scope(self._settings, self._wait_topic(connection), self._tables)
            results = self._job(scope, due.partitions)
            return replace(sweep, due=due.rows, partitions=results)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def _connected(self) -> psycopg.Connection[TupleRow]:
        if self._connection is None:
            opening = self._connections.open(self._settings.postgres, "waitreg-sweeper")
            self._connection = self._held.enter_context(opening)
            require_schema(self._connection)
            # Counting and purging take longer the more rows there are; with a limit they might never end.
            lift_time_limits(self._connection)
            self._instruments.postgres(up=True)
        return self._connection

    @contextmanager
    def _lock(self, connection: psycopg.Connection[TupleRow]) -> Iterator[bool]:
        """Try to be the only sweep; this avoids wasted work, the fence keeps exports exact."""
        name = {"topic": self._settings.wait.topic}
        row = connection.execute(QUERIES["try_lock"], name).fetchone()
        ours = bool(row and row[0])
        try:
            yield ours
        finally:
            try:
                if ours:
                    connection.execute(QUERIES["unlock"], name)
            except psycopg.Error as error:
                # A closed connection has released it; this changes neither what the sweep did nor why it failed.
                log.warning("could not release the sweep's lock, closing its connection: %s", error_text(error))
                self.close()

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
        found = self._tables.recorded_topics(connection, self._settings.wait.topic)
        for record in found:
            require_same_identity(record.identity, topic.identity)
        if found:
            self._instruments.tables(max(record.staleness_s for record in found), topic.delete_retention_ms)
        self._topic, self._look_up_at = topic, self._clock.monotonic() + IDENTITY_CHECK_S
        return topic

    def _record(self, sweep: Sweep) -> None:
        """Record the sweep and purge old rows; if either fails, a warning suffices."""
        if self._connection is None:
            return
        try:
            record_sweep(self._connection, sweep, self._instance)
            if self._clock.monotonic() >= self._purge_at:
                rows = purge(self._connection, self._settings.sweeper.retention_days, marks_days(self._settings))
                self._instruments.purged(rows)
                more = max(rows.values()) >= ROWS_AT_ONCE
                self._purge_at = self._clock.monotonic() + (0.0 if more else PURGE_INTERVAL_S)
        except psycopg.Error as error:
            # A server that has become a standby refuses writes; a new connection may find the one that accepts them.
            log.warning("could not record the sweep: %s", error_text(error))
            self.close()


def _require_no_refusal(sweep: Sweep) -> None:
    """End the process over what only an operator can fix; the other partitions have been swept."""
    refused = [skipped.reason for skipped in sweep.skipped if skipped.skip in (Skip.TOPIC_CHANGED, Skip.REFUSED)]
    if refused:
        raise ConfigurationError(refused[0])
