"""Asks Postgres for a sign of life, since a sweep may wait for minutes, and comes at intervals only."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.tree import Settings

PAUSE_S: Final = 10.0
# An answer takes milliseconds.
LATE_S: Final = 10.0


class PostgresLiveness:
    """Notes whether Postgres answers."""

    def __init__(
        self, settings: Settings, connections: OpenConnections, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Open nothing yet.

        Args:
            settings: where Postgres is.
            connections: those of the service, to be given up with it.
            monotonic: measures how long an answer takes, s.
        """
        self._settings = settings
        self._connections = connections
        self._monotonic = monotonic
        self._asked_s: float | None = None
        self._failure: str | None = None
        self._held = ExitStack()
        self._connection: psycopg.Connection[TupleRow] | None = None

    def ask_once(self) -> float:
        """Ask, over the same connection until it fails.

        Returns:
            The pause until it is to be asked again, s.
        """
        self._asked_s = self._monotonic()
        try:
            if self._connection is None:
                opening = self._connections.open(self._settings.postgres, "waitreg-sweeper watch")
                self._connection = self._held.enter_context(opening)
            self._connection.execute("select 1")
        except (psycopg.Error, WaitRegistryError) as error:
            self._failure = error_text(error)
            self.close()
        else:
            self._failure = None
        self._asked_s = None
        return PAUSE_S

    def close(self) -> None:
        """Close the connection; the next question opens another one."""
        self._connection = None
        self._held.close()

    def trouble(self) -> str | None:
        """Return why Postgres can't be used, None while it can."""
        asked_s = self._asked_s
        waited_s = 0.0 if asked_s is None else self._monotonic() - asked_s
        return f"Postgres hasn't answered for {waited_s:.0f} s" if waited_s > LATE_S else self._failure
