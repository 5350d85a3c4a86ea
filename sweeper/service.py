"""The sweeper as a service: scheduled sweeps, metrics and health; or a single sweep."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event

import orjson
from pyspark.sql import SparkSession

from sweeper.alerts.watch import AlertWatch
from sweeper.counted_metrics_watch import CountedMetricsWatch
from sweeper.health import readiness
from sweeper.job import SparkJob
from sweeper.metrics import Instruments
from sweeper.periods import Schedule
from sweeper.postgres_liveness import PostgresLiveness
from sweeper.result import Sweep, SweepResult
from sweeper.sweeper import Sweeper
from sweeper.tables_policy import OUR_SINK, TablesPolicy
from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.service.health import Health
from wait_registry.service.start_checks import check_before_spark
from wait_registry.service.stop_limit import stop_limit
from wait_registry.settings.relations import require_relations
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from wait_registry.spark import StartStopped
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import SWEEPER_CONNECT_SINK, SWEEPER_INTERVAL
from wait_registry.telemetry.server import service_server
from wait_registry.telemetry.tracing import require_tracing

log = logging.getLogger(__name__)

# A transaction that has started gets its whole time; the next fence aborts one that is given up after that.
STOP_LIMIT_S = 40.0
# A sweep that is given up fails at once, and reports it.
SHUTDOWN_GRACE_S = 10.0


class SweepIncomplete(WaitRegistryError):
    """A single sweep skipped rows or partitions: its line names them; fix those, or run it again."""


class SweeperService:
    """One sweeper process; any number may run, they fence one another partition by partition."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession | None = None,
        once: bool = False,
        tables: TablesPolicy = OUR_SINK,
        require_startable: Callable[[OpenConnections], None] | None = None,
    ) -> None:
        """Check the settings; nothing is opened yet.

        Args:
            settings: of the sweeper.
            spark: a session to use instead of an own one.
            once: run one sweep, print what was done, and end.
            tables: what may be assumed of the tables.
            require_startable: another check before the start, with the connections of the service.

        Raises:
            ConfigurationError: settings contradict each other, or an alert rule can't be read.
        """
        require_relations(settings, "sweeper")
        self._settings = settings
        self._once = once
        self._registry = MetricsRegistry()
        self._stop = Event()
        self._connections = OpenConnections()
        self._require_startable = require_startable or (lambda _: None)
        self._spark = SparkJob(settings, spark, self._stop)
        instance = f"{socket.gethostname()}-{os.getpid()}"
        instruments = Instruments(self._registry)
        self._sweeper = Sweeper(settings, self._spark, instruments, instance, self._connections, tables)
        self._postgres = PostgresLiveness(settings, self._connections)
        self._schedule = self._scheduled()
        self._registry.collect_from(self._readings)
        self._last: Sweep | None = None
        self._last_ended = 0.0
        self._began = time.monotonic()

    def _scheduled(self) -> Schedule:
        """Plan the sweeps, and what is watched alongside."""
        settings, connections = self._settings, self._connections
        schedule = Schedule(self._sweep, settings.sweeper.interval_s)
        schedule.watch(self._postgres.ask_once, self._postgres.close)
        counted = CountedMetricsWatch(settings, connections)
        counted.expose(self._registry)
        schedule.watch(counted.read_once)
        if settings.alerts.rule:
            alerts = AlertWatch(settings, connections)
            alerts.expose(self._registry)
            schedule.watch(alerts.run_once, alerts.close)
        return schedule

    def run(self) -> None:
        """Sweep until `request_stop`.

        The Spark session is started first although nothing may be due for long: a missing Java or jar shows at once,
        and the first export doesn't wait for it. A single sweep starts it only when something is due.

        Raises:
            ConfigurationError: Postgres, Kafka, the schema or a topic is wrong, or a given check refused the start.
            WaitRegistryError: work can't continue; or, with ``once``, the sweep failed or skipped rows or partitions.
        """
        with stop_limit(STOP_LIMIT_S, self._stop, self._give_up):
            self._require_startable(self._connections)
            # A task that can't trace sweeps without traces: only here can wrong settings be refused.
            require_tracing(self._settings.telemetry, "sweeper")
            try:
                if self._once:
                    self._run_once()
                else:
                    check_before_spark(self._settings, "sweeper", self._connections)
                    with suppress(StartStopped):
                        self._spark.start()
                        self._run_scheduled()
            finally:
                self._sweeper.close()
                self._spark.stop()

    def request_stop(self) -> None:
        """Ask `run` to end after the sweep that is running, if that doesn't take too long; from any thread."""
        self._stop.set()
        self._schedule.request_stop()

    def ready(self) -> Health:
        """Return whether sweeps happen and succeed."""
        now, last = time.monotonic(), self._last
        return readiness(
            self._schedule.alive,
            None if last is None else last.trouble(),
            None if last is None else now - self._last_ended,
            self._settings.sweeper.interval_s,
            now - self._began if self._schedule.running else None,
            self._postgres.trouble(),
        )

    def _give_up(self) -> None:
        self._connections.give_up()
        self._spark.give_up()

    def _live(self) -> Health:
        return Health.of([] if self._schedule.alive else ["the schedule is not running"])

    def _run_once(self) -> None:
        sweep = self._sweeper.run_once()
        print(orjson.dumps(sweep.as_fields()).decode(), flush=True)
        if sweep.result in (SweepResult.FAILED, SweepResult.PARTIAL):
            raise SweepIncomplete(sweep.in_words())

    def _run_scheduled(self) -> None:
        with service_server(self._settings, "sweeper", self._registry, self._live, self.ready) as server:
            log.info("sweeping every %g s, metrics on port %d", self._settings.sweeper.interval_s, server.port)
            self._schedule.run(STOP_LIMIT_S + SHUTDOWN_GRACE_S, self._connections.give_up)

    def _sweep(self) -> None:
        self._began = time.monotonic()
        self._spark.require_alive()
        self._last = self._sweeper.run_once()
        self._last_ended = time.monotonic()

    def _readings(self) -> Readings:
        return [
            Reading(SWEEPER_INTERVAL, self._settings.sweeper.interval_s),
            Reading(SWEEPER_CONNECT_SINK, float(self._settings.sink.kind is SinkKind.CONNECT)),
        ]
