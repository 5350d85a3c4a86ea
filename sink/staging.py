"""The temporary tables that batches go through on their way into Postgres, kept young while their connection lives."""

from __future__ import annotations

from sink.progress import QUERIES, Connection
from wait_registry.clock import Clock

FREEZE_EVERY_S = 3600.0


class Staging:
    """The staged tables of one connection.

    Autovacuum can't reach another session's temporary tables. Left alone, those of a sink that runs undisturbed for
    weeks keep Postgres' oldest transaction id where it was when they were made, until it stops giving out new ones, in
    every database of the server.
    """

    def __init__(self, connection: Connection, clock: Clock) -> None:
        """Make the tables, over a connection in autocommit."""
        self._connection = connection
        self._clock = clock
        connection.execute(QUERIES["stage"])
        self._frozen_at = clock.monotonic()

    def keep_young(self) -> None:
        """Freeze the tables if that is due; never within a transaction. Errors are psycopg's."""
        now = self._clock.monotonic()
        if now - self._frozen_at >= FREEZE_EVERY_S:
            self._connection.execute(QUERIES["freeze_staged"])
            self._frozen_at = now
