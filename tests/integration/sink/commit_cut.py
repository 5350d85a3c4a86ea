"""A TCP proxy before Postgres that cuts a connection at its COMMIT, with or without letting the COMMIT through."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit


class CommitCut:
    """Forwards bytes; once `armed` is set, the next COMMIT is the connection's last message."""

    def __init__(self, url: str, *, commit_arrives: bool) -> None:
        self._parts = urlsplit(url)
        self._commit_arrives = commit_arrives
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._answers_dropped = threading.Event()
        self.armed = threading.Event()

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
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, target, source is client), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if from_client and self.armed.is_set() and b"COMMIT" in data:
                    self._cut(source, target, data)
                    return
                if from_client or not self._answers_dropped.is_set():
                    target.sendall(data)

    def _cut(self, client: socket.socket, server: socket.socket, commit: bytes) -> None:
        """End the connection; a COMMIT that is to arrive is on its way before the client can learn of the end."""
        self._answers_dropped.set()
        if self._commit_arrives:
            server.sendall(commit)
        _close(client)
        if not self._commit_arrives:
            _close(server)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
