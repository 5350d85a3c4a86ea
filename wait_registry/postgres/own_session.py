"""Whether a connection has a session of Postgres of its own, as locks and temporary tables need it.

A pooler in transaction mode gives each transaction whichever session is free. One client alone mostly gets the same
one, so the test lets other connections compete.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final, TypeAlias

import psycopg
from psycopg.rows import TupleRow

Connection: TypeAlias = psycopg.Connection[TupleRow]

ROUNDS: Final = 8
# How long a connection that competes may wait for a session.
LIMIT_S: Final = 5.0
# Of two hosts, two sessions may have one process ID.
_SESSION: Final = "select pid, extract(epoch from backend_start) from pg_stat_activity where pid = pg_backend_pid()"

_LOCK: Final = "select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' limit 1"


def has_own_session(connection: Connection, another: Callable[[], Connection]) -> bool:
    """Return whether all statements of a connection run in one session, which no other connection gets meanwhile.

    A server names its session when it accepts a connection, so that statements can be canceled. A pooler names none of
    its server's. If the names are the same, there is no pooler. Otherwise the answer False is proved by what was seen:
    another session, or another connection in this one. The answer True isn't, if the other connections came to other
    processes of the pooler.

    Args:
        connection: in autocommit.
        another: opens a connection to the same address.

    Raises:
        psycopg.OperationalError: Postgres is unavailable, or a connection that competes gets no session in time.
    """
    own = _session(connection)
    if own[0] == connection.info.backend_pid:
        return True
    for _ in range(ROUNDS):
        # Twice: a pooler that takes turns gives its other free session the second time.
        if any(_session(connection) != own for _ in range(2)):
            return False
        with closing(another()) as other, _limit(other):
            if _session(other) == own:
                return False
    return True


def has_lock(connection: Connection) -> bool:
    """Return whether a session has an advisory lock, as a new one has only if a pooler doesn't reset what it reuses.

    Args:
        connection: in autocommit.

    Raises:
        psycopg.OperationalError: Postgres is unavailable.
    """
    return connection.execute(_LOCK, prepare=False).fetchone() is not None


def _session(connection: Connection) -> TupleRow:
    # A prepared statement would stay in a session of the pooler's.
    row = connection.execute(_SESSION, prepare=False).fetchone()
    assert row is not None  # each session sees itself
    return row


@contextmanager
def _limit(connection: Connection) -> Iterator[None]:
    """Break a connection that gets no answer in time."""
    # A descriptor of our own, as in `OpenConnections`.
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        timer = threading.Timer(LIMIT_S, break_off, [own])
        timer.start()
        try:
            yield
        except psycopg.OperationalError as error:
            raise psycopg.OperationalError(
                f"the pooler gave a second connection no session within {LIMIT_S:g} s, so it isn't known whether the "
                f"first one keeps its own: raise the size of the pool ({error})"
            ) from error
        finally:
            timer.cancel()
            timer.join()


def break_off(connection: socket.socket) -> None:
    """End a connection from any thread; what waits for it fails."""
    with suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RDWR)
