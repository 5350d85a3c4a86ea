"""A TCP proxy before Postgres that breaks one connection at its COMMIT, before it arrives or before it is answered."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit


class CommitCut:
    """Forwards bytes; once `armed` is set, the next COMMIT is the last message of its connection, and of it alone.

    Args:
        url: of Postgres.
        commit_arrives: whether Postgres gets that COMMIT.
        hangs: the client isn't told that its connection is over: it waits for an answer that never comes.
    """

    def __init__(self, url: str, *, commit_arrives: bool, hangs: bool = False) -> None:
        self._parts = urlsplit(url)
        self._commit_arrives = commit_arrives
        self._hangs = hangs
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._turn = threading.Lock()
        self.armed = threading.Event()
        self.cut = threading.Event()

    @property
    def url(self) -> str:
        """The address to connect to."""
        user = f"{self._parts.username}@" if self._parts.username else ""
        place = f"{user}127.0.0.1:{self._listener.getsockname()[1]}"
        return urlunsplit(self._parts._replace(netloc=place))

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in (self._listener, *self._sockets):
            _close(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._parts.hostname or "127.0.0.1", self._parts.port or 5432))
                self._sockets += [client, server]
                silenced = threading.Event()
                for forward in (self._requests, self._answers):
                    threading.Thread(target=forward, args=(client, server, silenced), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, silenced: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if b"COMMIT" in data and self._is_chosen():
                    silenced.set()
                    if not self._commit_arrives:
                        return self._end(client, server)
                server.sendall(data)
        return _close(server)

    def _answers(self, client: socket.socket, server: socket.socket, silenced: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if silenced.is_set():
                    return self._end(client, server)
                client.sendall(data)
        return _close(client)

    def _is_chosen(self) -> bool:
        with self._turn:
            chosen = self.armed.is_set()
            self.armed.clear()
            return chosen

    def _end(self, client: socket.socket, server: socket.socket) -> None:
        """End the connection; where it hangs only Postgres' side of it, as if the client's machine were cut off."""
        _close(server)
        if not self._hangs:
            _close(client)
        self.cut.set()


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
