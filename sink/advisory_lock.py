"""A session advisory lock: one sink at a time, and no old transaction of ours still running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sink.progress import QUERIES, Connection

POLL_S = 1.0
RETRY_S = 0.1


def try_lock(connection: Connection, topic: str, for_s: float = 0.0) -> bool:
    """Take the lock of the one active sink, or rebuild, of a wait topic and schema.

    Returns:
        True if the connection has it for as long as it lives, False if another session has it for ``for_s``, s.
    """
    deadline = time.monotonic() + for_s
    while True:
        row = connection.execute(QUERIES["try_lock"], {"topic": topic}).fetchone()
        assert row is not None  # a select without from has one row
        if row[0] or time.monotonic() >= deadline:
            return bool(row[0])
        time.sleep(RETRY_S)


def wait_for_lock(connection: Connection, topic: str, stop: threading.Event, waiting: Callable[[], None]) -> bool:
    """Take the lock, however long that takes; ``waiting`` is called before each pause.

    Returns False when ``stop`` was set first. Raises psycopg.Error when Postgres goes away.
    """
    while not stop.is_set():
        if try_lock(connection, topic):
            return True
        waiting()
        stop.wait(POLL_S)
    return False
