"""The connections of one service, which another thread can break, so that a stop doesn't wait for Postgres."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from psycopg.rows import TupleRow

from wait_registry.postgres.connection import PostgresUnavailable, connect
from wait_registry.postgres.own_session import break_off
from wait_registry.settings.postgres import PostgresSettings


class OpenConnections:
    """Opens connections and keeps track of them, for any number of threads.

    Nothing else ends a wait for a server that hangs while its host's kernel still answers: no network limit is
    exceeded, and a statement has no time limit.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._given_up = False

    @property
    def given_up(self) -> bool:
        """Whether `give_up` was called."""
        return self._given_up

    @contextmanager
    def open(self, settings: PostgresSettings, application_name: str) -> Iterator[psycopg.Connection[TupleRow]]:
        """Open a connection in autocommit, closed at the end; arguments and errors as `connect`.

        After `give_up`, a waiting statement raises psycopg.OperationalError, and a new connection
        `PostgresUnavailable`.
        """
        own: list[socket.socket] = []

        def keep(connection: psycopg.Connection[TupleRow]) -> None:
            # A descriptor of our own: libpq's may be closed and its number reused when the connection is broken.
            own.append(socket.socket(fileno=os.dup(connection.fileno())))
            with self._guard:
                self._sockets.update(own)
                if self._given_up:
                    break_off(own[0])

        if self._given_up:
            raise PostgresUnavailable("this process ends and opens no more connections to Postgres")
        try:
            with closing(
                connect(settings, autocommit=True, application_name=application_name, opened=keep)
            ) as connection:
                yield connection
        finally:
            with self._guard:
                self._sockets.difference_update(own)
            for each in own:
                each.close()

    def give_up(self) -> None:
        """Break all open connections and refuse new ones, permanently; from any thread."""
        with self._guard:
            self._given_up = True
            for each in self._sockets:
                break_off(each)
