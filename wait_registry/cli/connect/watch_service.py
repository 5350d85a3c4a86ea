"""`waitreg connect watch` as a service: looks at the workers and at what is due, with metrics and health."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from wait_registry.cli.connect.lag import SinkLags
from wait_registry.cli.connect.oldest_due import DueWatch, OldestDue
from wait_registry.cli.connect.rest import ConnectRest
from wait_registry.cli.connect.state import STATES
from wait_registry.cli.connect.watch import Look, Watch
from wait_registry.settings.connect_relations import require_connect
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.health import Health
from wait_registry.telemetry.server import TelemetryServer

log = logging.getLogger(__name__)


class WatchService:
    """One watcher; it continues while no worker answers."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Check the settings; nothing is asked yet.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        require_connect(settings.connect)
        self._settings = settings
        self._watch = Watch(ConnectRest(settings.connect), settings.connect, monotonic)
        self._stop = threading.Event()
        self._look: Look | None = None
        self._lags: dict[str, int] = {}
        self._registry = MetricsRegistry()
        self._restarts = self._registry.counter(m.CONNECT_RESTARTS)
        self._sink_lags = SinkLags(settings.kafka)
        self._due_watch = DueWatch(settings) if settings.sweeper.kind is SweeperKind.CONNECT else None
        self._due: OldestDue | None = None

    def run(self) -> None:
        """Look until `request_stop`.

        Raises:
            ConfigurationError: the worker has never let us in and refuses us.
        """
        telemetry, connect = self._settings.telemetry, self._settings.connect
        self._registry.collect_from(self._readings)
        with TelemetryServer(
            telemetry.host, telemetry.port, self._registry, lambda: Health(True), self.ready
        ) as server:
            log.info("watching %s every %g s, metrics on port %d", connect.url, connect.watch_interval_s, server.port)
            # Apart from the watch: a Postgres that doesn't answer must not keep connectors from being restarted.
            threading.Thread(target=self._look_at_due, name="due", daemon=True).start()
            self.run_once()
            while not self._stop.wait(connect.watch_interval_s):
                self.run_once()

    def _look_at_due(self) -> None:
        while self._due_watch is not None and not self._stop.is_set():
            self._due = self._due_watch.run_once()
            self._stop.wait(self._settings.connect.watch_interval_s)

    def run_once(self) -> Look:
        """Look once, as `Watch.run_once`, and report it in metrics and health."""
        look = self._look = self._watch.run_once()
        for state in look.connectors:
            self._restarts.labels(state.name)  # there with 0, so that the first restart shows as an increase
        for name in look.restarted:
            self._restarts.labels(name).inc()
        before = self._sink_lags.trouble
        self._lags = self._sink_lags.of(look.connectors)
        if self._sink_lags.trouble is not None and before is None:
            log.warning("%s", self._sink_lags.trouble)
        return look

    def request_stop(self) -> None:
        """Ask `run` to end; from any thread."""
        self._stop.set()

    def ready(self) -> Health:
        """Return whether connectors are watched."""
        return Health.of(["the first look has not ended yet"] if self._look is None else self._look.reasons())

    def _readings(self) -> Iterator[Reading]:
        look = self._look
        yield Reading(m.READY, float(self.ready().ok), ("connect",))
        yield Reading(m.CONNECT_UP, float(look is not None and look.trouble is None))
        yield Reading(m.CONNECT_KEEPS_TABLES, float(self._settings.sink.kind is SinkKind.CONNECT))
        yield Reading(m.CONNECT_EXPORTS, float(self._settings.sweeper.kind is SweeperKind.CONNECT))
        yield from self._due_readings()
        if look is None:
            return
        for state in look.connectors:
            yield Reading(m.CONNECT_RUNNING, float(state.runs), (state.name,))
            yield Reading(m.CONNECT_RESTART_LIMIT_REACHED, float(state.name in look.at_limit), (state.name,))
            counted = Counter(task.state.lower() for task in state.tasks)
            for word in dict.fromkeys((*STATES, *counted)):
                yield Reading(m.CONNECT_TASKS, counted[word], (state.name, word))
        for name in look.missing:
            yield Reading(m.CONNECT_RUNNING, 0, (name,))
        for name, lag in self._lags.items():
            yield Reading(m.CONNECT_SINK_LAG, lag, (name,))

    def _due_readings(self) -> Iterator[Reading]:
        due = self._due
        if due is None:
            return
        yield Reading(m.CONNECT_POSTGRES_UP, float(due.trouble is None))
        for lacks, age_s in due.ages_s.items():
            yield Reading(m.CONNECT_OLDEST_DUE, age_s, (lacks,))
