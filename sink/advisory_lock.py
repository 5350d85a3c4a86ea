"""A session advisory lock: one sink at a time, and no old transaction of ours still running."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

from sink.progress import Connection
from wait_registry.postgres.connection import schema_of

POLL_S = 1.0
RETRY_S = 0.1


def sink_lock_key(connection: Connection, topic: str) -> int:
    """Return the key of the lock of the one active sink, or rebuild, of a wait topic and schema.

    It is a signed 64-bit number, the same on every host.
    """
    digest = hashlib.sha256("\n".join(("waitreg", "sink", schema_of(connection), topic)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def try_lock(connection: Connection, key: int, for_s: float = 0.0) -> bool:
    """Take the lock for as long as the connection lives, or return False if another session has it for ``for_s``, s."""
    deadline = time.monotonic() + for_s
    while True:
        row = connection.execute("select pg_try_advisory_lock(%s)", (key,)).fetchone()
        assert row is not None  # a select without from has one row
        if row[0] or time.monotonic() >= deadline:
            return bool(row[0])
        time.sleep(RETRY_S)


def wait_for_lock(connection: Connection, key: int, stop: threading.Event, waiting: Callable[[], None]) -> bool:
    """Take the lock, however long that takes; ``waiting`` is called before each pause.

    Returns False when ``stop`` was set first. Raises psycopg.Error when Postgres goes away.
    """
    while not stop.is_set():
        if try_lock(connection, key):
            return True
        waiting()
        stop.wait(POLL_S)
    return False
