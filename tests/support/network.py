"""A TCP proxy for one server, to break a real connection with: cut it, refuse it, stall it, half-open it, slow it."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tests.support.settings import with_postgres
from wait_registry.settings.tree import Settings
from waitreg.local.ports import LOOPBACK, free_ports

T = TypeVar("T")

READ_BYTES = 262_144
SLOW_STEP_S = 0.1
ANSWER_S = 30.0
ATTEMPTS = 5
# A socket closed with this option sends a reset instead of an orderly end.
RESET = struct.pack("ii", 1, 0)


@dataclass
class Figures:
    """The connections and bytes so far, which prove that a fault happened."""

    connections: int = 0
    connections_cut: int = 0
    connections_broken_young: int = 0
    bytes_carried: int = 0
    bytes_held_back: int = 0
    """Bytes that the link had while it was closed; it sends them on when it flows again."""
    bytes_slowed: int = 0
    bytes_dropped: int = 0
    """Bytes read from one side of a connection that ended before the other side had them."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a link treats bytes; see the methods of `Link`."""

    to_server: bool = True
    to_client: bool = True
    bytes_per_s: int = 0
    delay_s: float = 0.0
    held_request: int | None = None
    ends_after: tuple[int, ...] = ()


@dataclass(eq=False)
class Pair:
    """One connection of a client and the link's own to the server; the link's first pair has the number 0."""

    number: int
    task: asyncio.Task[Any] | None
    carried: int = 0
    api_keys: set[int] = field(default_factory=set)
    """The kinds of requests that have come on this connection, as far as a `KafkaProxy` carries it."""

    def bytes_left(self, conduct: Conduct) -> int:
        if not conduct.ends_after:
            return sys.maxsize
        return max(conduct.ends_after[self.number % len(conduct.ends_after)] - self.carried, 0)


class Link:
    """Carries the connections of all its clients to one server; a context manager, with one thread.

    A fault lasts until `flow`, except `cut`, which is over at once. Each method returns when the fault has happened.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        """Listen at once; connections to host and port of the server are served from `__enter__` on."""
        self._target = target
        self._socket: socket.socket | None = _listen(0)
        self.port: int = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._conduct = Conduct()
        self._changed = asyncio.Condition()
        self._pairs: set[Pair] = set()
        self._figures = Figures()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"link to {target[1]}", daemon=True)

    @property
    def address(self) -> str:
        """Host and port to give to clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def figures(self) -> Figures:
        return replace(self._figures)

    def __enter__(self) -> Self:
        self._thread.start()
        self.allow()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection and the listener. May be called again."""
        if self._thread.is_alive():
            self.refuse()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(ANSWER_S)
            self._loop.close()
        elif self._socket is not None:
            self._socket.close()

    def cut(self) -> int:
        """Reset all connections of this moment and return how many there were; new ones are accepted."""
        return self._order(self._cut())

    def refuse(self) -> int:
        """Refuse new connections until `allow`, reset the old ones, and return how many there were."""

        async def refuse() -> int:
            if self._server is not None:
                self._server.close()
                self._server = None
            return await self._cut()

        return self._order(refuse())

    def allow(self) -> None:
        """Accept connections again, at the same port."""

        async def allow() -> None:
            if self._server is None:
                listener, self._socket = self._socket or _listen(self.port), None
                self._server = await asyncio.start_server(self._serve, sock=listener)

        self._order(allow())

    def stall(self) -> None:
        """Let no byte through in either direction; connections stay open."""
        self._behave(Conduct(to_server=False, to_client=False))

    def half_open(self) -> None:
        """Let what clients send arrive, and hold back the answers."""
        self._behave(Conduct(to_client=False))

    def slow(self, bytes_per_s: int, delay_s: float) -> None:
        """Send on this many bytes per second, in each direction of each connection, and that much later."""
        self._behave(Conduct(bytes_per_s=bytes_per_s, delay_s=delay_s))

    def break_young(self, ends_after: tuple[int, ...]) -> None:
        """Reset each connection after a number of bytes: the first connection after the first count, and so on."""
        self._behave(Conduct(ends_after=ends_after))

    def flow(self) -> None:
        """End stall, half-open, slow, held requests and early ends; what was held back is sent on."""
        self._behave(Conduct())

    def _order(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_S)

    def _behave(self, conduct: Conduct) -> None:
        async def change() -> None:
            self._conduct = conduct
            for pair in self._pairs:
                self._break_if_young(pair)
            async with self._changed:
                self._changed.notify_all()

        self._order(change())

    async def _cut(self) -> int:
        tasks = [pair.task for pair in self._pairs if pair.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._figures.connections_cut += len(tasks)
        return len(tasks)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        pair = Pair(self._figures.connections, asyncio.current_task())
        self._figures.connections += 1
        self._pairs.add(pair)
        ends = [to_client]
        in_order = False
        try:
            server, to_server = await asyncio.open_connection(*self._target)
            ends.append(to_server)
            for end in ends:
                end.transport.set_write_buffer_limits(0)  # so that `drain` waits until the kernel has all
            async with asyncio.TaskGroup() as both:
                up = both.create_task(self._carry(pair, client, to_server, up=True))
                down = both.create_task(self._carry(pair, server, to_client, up=False))
            in_order = up.result() and down.result()
        except* OSError:
            pass  # one side has ended the connection, or the server isn't there
        except* asyncio.CancelledError:
            pass  # a cut; asyncio's server would log it as an error
        finally:
            self._pairs.discard(pair)
            for end in ends:
                _close(end, reset=not in_order)

    async def _carry(self, pair: Pair, source: asyncio.StreamReader, target: asyncio.StreamWriter, up: bool) -> bool:
        """Carry one direction of a connection to its end; returns whether the target knows of an orderly end."""

        def is_open() -> bool:
            conduct = self._conduct
            if not up:
                return conduct.to_client
            return conduct.to_server and conduct.held_request not in pair.api_keys

        while data := await self._read(source, is_open):
            self._figures.bytes_slowed += len(data) if self._conduct.bytes_per_s or self._conduct.delay_s else 0
            async for part in self._let_through(pair, data, up):
                await self._send(pair, part, target, is_open)
        await self._until(is_open)
        target.write_eof()
        return True

    async def _let_through(self, pair: Pair, data: bytes, upwards: bool) -> AsyncIterator[bytes]:
        """Yield what is sent on of these bytes, all here; an OSError ends the connection."""
        yield data

    async def _read(self, source: asyncio.StreamReader, is_open: Callable[[], bool]) -> bytes:
        try:
            return await source.read(READ_BYTES)
        except OSError:
            await self._until(is_open)  # the other side doesn't hear of it before
            raise

    async def _send(self, pair: Pair, data: bytes, target: asyncio.StreamWriter, is_open: Callable[[], bool]) -> None:
        try:
            await asyncio.sleep(self._conduct.delay_s)
            while data:
                if not is_open():
                    self._figures.bytes_held_back += len(data)
                    await self._until(is_open)
                rate = self._conduct.bytes_per_s
                step = max(int(rate * SLOW_STEP_S), 1) if rate else len(data)
                portion = data[: min(step, pair.bytes_left(self._conduct))]
                target.write(portion)
                await target.drain()
                data = data[len(portion) :]
                pair.carried += len(portion)
                self._figures.bytes_carried += len(portion)
                self._break_if_young(pair)
                await asyncio.sleep(len(portion) / rate if rate else 0)
        finally:
            self._figures.bytes_dropped += len(data)

    async def _until(self, is_open: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(is_open)

    def _break_if_young(self, pair: Pair) -> None:
        if pair.task is not None and pair.bytes_left(self._conduct) == 0 and not pair.task.cancelling():
            self._figures.connections_broken_young += 1
            pair.task.cancel()


def link_to_postgres(url: str) -> Link:
    return Link(postgres_at(url))


def postgres_at(url: str) -> tuple[str, int]:
    """Return host and port of Postgres."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 5432


def behind_link(settings: Settings, link: Link) -> Settings:
    """Return the settings with the link's address instead of that of Postgres."""
    parts = urlsplit(settings.postgres.url.get_secret_value())
    user, at, _ = parts.netloc.rpartition("@")
    return with_postgres(settings, urlunsplit(parts._replace(netloc=f"{user}{at}{link.address}")))


def _close(end: asyncio.StreamWriter, *, reset: bool) -> None:
    if reset:
        with suppress(OSError):  # it is closed already
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.transport.abort()
    else:
        end.close()


def _listen(port: int) -> socket.socket:
    """Listen on a port; a chosen one is outside of the range from which other clients get theirs."""
    for _ in range(ATTEMPTS - 1):
        with suppress(OSError):
            return socket.create_server((LOOPBACK, port or free_ports(1)[0]), backlog=128)
    return socket.create_server((LOOPBACK, port or free_ports(1)[0]), backlog=128)
