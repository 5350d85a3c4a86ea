"""Has the metrics that are counted in the tables counted now and then, and keeps the numbers for scrapes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import psycopg

from sweeper.counted_metrics import read_counted_metrics
from sweeper.periods import pause_after
from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.connection import limit_to_counting
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.repeats import Failures
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import DEAD_LETTERS_READ

log = logging.getLogger(__name__)


class CountedMetricsWatch:
    """Keeps the last readings for any number of scrapes."""

    def __init__(self, settings: Settings, connections: OpenConnections, now: Callable[[], float] = time.time) -> None:
        """Open nothing yet.

        Args:
            settings: where Postgres is, and the name of the operations topic.
            connections: those of the service, to be given up with it.
            now: wall clock, s since the epoch.
        """
        self._settings = settings
        self._connections = connections
        self._now = now
        self._readings: tuple[Reading, ...] = ()
        self._read_at = 0.0
        self._failures = Failures(log, "the metrics of dead letters are read again")

    def expose(self, registry: MetricsRegistry) -> None:
        """Show the last readings, and when they were read."""
        registry.collect_from(self._show)

    def read_once(self) -> float:
        """Count over a new connection; if that fails, nothing old is shown any more.

        Returns:
            The pause until it is to be read again, s.
        """
        began_s = time.monotonic()
        try:
            with self._connections.open(self._settings.postgres, "waitreg-sweeper backlog") as connection:
                limit_to_counting(connection)
                self._readings = tuple(read_counted_metrics(connection, self._settings.operations.topic))
        except (psycopg.Error, WaitRegistryError) as error:
            self._readings = ()
            reason = error_text(error)
            if not self._connections.given_up and self._failures.is_news(reason):
                log.warning("the metrics of dead letters can't be read, and are tried again: %s", reason)
        else:
            self._read_at = self._now()
            self._failures.end()
        return pause_after(time.monotonic() - began_s)

    def _show(self) -> Readings:
        return [Reading(DEAD_LETTERS_READ, self._read_at), *self._readings]
