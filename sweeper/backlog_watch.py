"""Reads the backlog of dead letters now and then, in a thread of its own: scrapes cost nothing, sweeps don't wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

import psycopg

from sweeper.backlog import read_backlog
from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.error_text import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import DEAD_LETTERS_READ

log = logging.getLogger(__name__)

PAUSE_S: Final = 30.0
# A large backlog takes Postgres at most a twentieth of one core.
PAUSE_FACTOR: Final = 20.0
LIMIT_MS: Final = 60_000
JOIN_S: Final = 5.0


def pause_after(took_s: float) -> float:
    """Return how long to wait after a reading that took so long, both s."""
    return max(PAUSE_S, PAUSE_FACTOR * took_s)


class BacklogWatch:
    """Keeps the last readings for any number of scrapes; `start` and `stop` it once."""

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
        self._failing = False
        self._stop = Event()
        self._thread = Thread(target=self._run, name="backlog", daemon=True)

    def expose(self, registry: MetricsRegistry) -> None:
        """Show the last readings, and when they were read."""
        registry.collect_from(self._show)

    def start(self) -> None:
        """Read at once, and then again and again."""
        self._thread.start()

    def stop(self) -> None:
        """End; a statement that runs is left to its connection, which the service gives up."""
        self._stop.set()
        self._thread.join(JOIN_S)

    def read_once(self) -> None:
        """Read the backlog over a new connection; if that fails, nothing old is shown any more."""
        try:
            with self._connections.open(self._settings.postgres, "waitreg-sweeper backlog") as connection:
                connection.execute("set default_transaction_read_only to on")
                connection.execute("set max_parallel_workers_per_gather to 0")
                connection.execute(f"set statement_timeout to {LIMIT_MS}".encode())
                self._readings = tuple(read_backlog(connection, self._settings.operations.topic))
        except (psycopg.Error, WaitRegistryError) as error:
            self._readings = ()
            level = logging.DEBUG if self._failing or self._stop.is_set() else logging.WARNING
            self._failing = True
            log.log(level, "the metrics of dead letters can't be read, and are tried again: %s", error_text(error))
        else:
            self._read_at, self._failing = self._now(), False

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            began = time.monotonic()
            self.read_once()
            pause_s = pause_after(time.monotonic() - began)

    def _show(self) -> Readings:
        return [Reading(DEAD_LETTERS_READ, self._read_at), *self._readings]
