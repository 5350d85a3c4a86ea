"""A thread that counts in Postgres now and then, so that scrapes cost nothing and sweeps don't wait."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Final

import psycopg
from psycopg.rows import TupleRow

PAUSE_S: Final = 30.0
# A large backlog takes Postgres at most a twentieth of one core.
PAUSE_FACTOR: Final = 20.0
LIMIT_MS: Final = 60_000
JOIN_S: Final = 5.0


def pause_after(took_s: float) -> float:
    """Return how long to wait after a reading that took so long, both s."""
    return max(PAUSE_S, PAUSE_FACTOR * took_s)


def limit(connection: psycopg.Connection[TupleRow]) -> None:
    """Have a connection only read, on one core, and for at most `LIMIT_MS` per statement."""
    connection.execute("set default_transaction_read_only to on")
    connection.execute("set max_parallel_workers_per_gather to 0")
    connection.execute(f"set statement_timeout to {LIMIT_MS}".encode())


class CountingThread:
    """Counts at once, and then again and again; `start` and `stop` it once.

    Args:
        name: of the thread.
        count: returns how long Postgres worked, s; it raises nothing while the service can continue.
        close: called at the end, in the thread.
        pause: returns how long to wait after a count that took so long, both s.
    """

    def __init__(
        self,
        name: str,
        count: Callable[[], float],
        close: Callable[[], None] = lambda: None,
        pause: Callable[[float], float] = pause_after,
    ) -> None:
        self._count = count
        self._pause = pause
        self._close = close
        self._stop = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a statement that runs is left to its connection, which the service gives up."""
        self._stop.set()
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            pause_s = self._pause(self._count())
        self._close()
