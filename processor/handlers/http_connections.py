"""The connections of the HTTP handler to its service: each has one exchange at a time, and is used again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Final, cast

from aiohappyeyeballs import start_connection

from processor.handlers.descriptors import NoThreadError
from processor.handlers.http_answer import Answer, AnswerReader, BrokenAnswerError
from wait_registry.daemon_threads import in_daemon_thread

# Servers close idle connections after 5 s (Node.js) to 75 s (nginx). The sooner we do, the fewer requests meet that.
_IDLE_S: Final = 15.0
# By then a name may have other addresses.
_AGE_S: Final = 300.0
# How long the addresses of a name are kept, s.
_ADDRESSES_S: Final = 10.0
# RFC 8305, section 8.
_NEXT_ADDRESS_S: Final = 0.25
# Reading is synchronous, so all connections share the place where bytes arrive.
_RECEIVED: Final = memoryview(bytearray(65_536))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a service is: ``tls`` is None for ``http://``."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    @property
    def name(self) -> str:
        """The name that its certificate must have: without the zone of an IPv6 address (RFC 6874)."""
        return self.host.partition("%")[0].rstrip(".")


class Connection(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None
        # What is under TLS: only it knows what the system hasn't taken yet.
        self._raw: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._opened_s = self.idle_since_s = loop.time()

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        """Send a request and return the answer; if it is cancelled or fails, the connection is closed.

        Raises:
            BrokenAnswerError: the service sent something else.
            ConnectionError: the connection ended before the answer.
        """
        assert self._transport is not None
        assert self._raw is not None
        self._reader.begin()
        self._waiter = waiter = self._loop.create_future()
        self._transport.write(head + body)
        try:
            answer: Answer = await waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._waiter = None
        # An answer that came before the whole request was sent is one.
        if not self._reader.reusable or self._raw.get_write_buffer_size():
            self.close()
        return answer

    def close(self) -> None:
        """Close it at once: nothing more is sent."""
        if self._transport is not None:
            self._transport.abort()

    def usable(self, now_s: float) -> bool:
        """Return whether it may have another request."""
        assert self._transport is not None
        return (
            not self._transport.is_closing() and now_s - self.idle_since_s < _IDLE_S and now_s - self._opened_s < _AGE_S
        )

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Start TLS with a server whose certificate must have this name.

        Raises:
            OSError: the server doesn't speak TLS, or not with this certificate; ssl.SSLError is one.
        """
        assert self._raw is not None
        self._transport = await self._loop.start_tls(self._raw, self, tls, server_hostname=name)

    # ---- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._raw = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _RECEIVED

    def buffer_updated(self, nbytes: int) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            # No request has asked for it.
            self.close()
            return
        try:
            answer = self._reader.feed(_RECEIVED[:nbytes])
        except BrokenAnswerError as error:
            waiter.set_exception(error)
            return
        if answer is not None:
            waiter.set_result(answer)

    def eof_received(self) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if (answer := self._reader.end()) is not None:
            self._waiter.set_result(answer)
        else:
            # What is still to be sent must not keep the call waiting.
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            lost = ConnectionResetError("the connection ended before the answer was whole")
            lost.__cause__ = exc
            self._waiter.set_exception(lost)


class Connections:
    """The connections to one service, as many at most as calls may run.

    Args:
        origin: where it is.
        limit: connections at most; further calls wait.
    """

    def __init__(self, origin: Origin, limit: int) -> None:
        self._origin = origin
        self._loop = asyncio.get_running_loop()
        self._free = asyncio.Semaphore(limit)
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._addresses: asyncio.Task[list[tuple[int, int, int, str, tuple[str, int]]]] | None = None
        self._addresses_until_s = 0.0
        self._cleaning: asyncio.TimerHandle | None = None

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        """Send a request on any connection and return its answer.

        Raises:
            BrokenAnswerError: the service sent something else.
            OSError: no connection, or it ended before the answer; ssl.SSLError is one.
        """
        async with self._free:
            connection = self._idle_one() or await self._connect()
            try:
                return await connection.exchange(head, body)
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Close all."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        if self._addresses is not None:
            self._addresses.cancel()
        for connection in self._open:
            connection.close()

    def _idle_one(self) -> Connection | None:
        """Return the one that was used last, so that those which aren't needed become old."""
        now_s = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable(now_s):
                return connection
            self._drop(connection)
        return None

    def _give_back(self, connection: Connection) -> None:
        connection.idle_since_s = now_s = self._loop.time()
        if not connection.usable(now_s):
            self._drop(connection)
            return
        self._idle.append(connection)
        if self._cleaning is None:
            self._cleaning = self._loop.call_later(_IDLE_S, self._clean)

    def _clean(self) -> None:
        """Close what nothing has used for long."""
        now_s = self._loop.time()
        while self._idle and not self._idle[0].usable(now_s):
            self._drop(self._idle.popleft())
        self._cleaning = self._loop.call_later(_IDLE_S, self._clean) if self._idle else None

    def _drop(self, connection: Connection) -> None:
        connection.close()
        self._open.discard(connection)

    async def _connect(self) -> Connection:
        origin = self._origin
        addresses = await self._resolved()
        opened = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, connection = await self._loop.create_connection(lambda: Connection(self._loop), sock=opened)
        if origin.tls is not None:
            await connection.secure(origin.tls, origin.name)
        self._open.add(connection)
        return connection

    async def _resolved(self) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        """Return the addresses, each time with another one in front; calls that need them at once ask once."""
        now_s = self._loop.time()
        if self._addresses is None or (self._addresses.done() and now_s >= self._addresses_until_s):
            host, port = self._origin.host, self._origin.port
            # In a daemon thread: a resolver that hangs must not keep the process from ending.
            self._addresses = asyncio.create_task(
                in_daemon_thread("resolver", socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)  # type: ignore[arg-type]
            )
        try:
            found = await asyncio.shield(self._addresses)
        except OSError:
            self._addresses = None
            raise
        except RuntimeError as error:
            self._addresses = None
            raise NoThreadError(
                f"no thread for looking up {self._origin.host}: {error}. The record hasn't been tried and stays in the "
                "registry. Raise the limit of threads (ulimit -u, pids.max of the container)"
            ) from error
        if self._addresses_until_s <= now_s:
            self._addresses_until_s = self._loop.time() + _ADDRESSES_S
        found.append(found.pop(0))
        return list(found)
