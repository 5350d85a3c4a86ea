"""A TCP proxy for one address, to break a real connection with: cut it, refuse it, stall it, half-open it, slow it."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from tests.support.network_pair import Conduct, Pair
from wait_registry.local.ports import LOOPBACK, free_ports

T = TypeVar("T")

ATTEMPTS = 5
# Closed with this, a socket sends a reset instead of an orderly end.
RESET = struct.pack("ii", 1, 0)
ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of connections and bytes so far: the proof that a fault happened."""

    connections: int = 0
    connections_cut: int = 0
    connections_broken_young: int = 0
    bytes_carried: int = 0
    bytes_held_back: int = 0
    """Came while they were not let through; they go on when the link flows again."""
    bytes_slowed: int = 0
    bytes_dropped: int = 0
    """Were taken from one side, and the connection ended before they reached the other."""


class Link:
    """Carries the connections of whoever connects to it to one server; a context manager, with one thread.

    A fault lasts until `flow`; `cut` is over at once. All methods return when it has happened.
    """

    def __init__(self, target: tuple[str, int], port: int = 0) -> None:
        """Listen at once; connections are served from `__enter__` on.

        Args:
            target: host and port of the server.
            port: to listen on; a free one when 0.
        """
        self._target = target
        self._listener: socket.socket | None = _listen(port)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._alarm, self._bell = socket.socketpair()
        self._pairs: set[Pair] = set()
        self._conduct = Conduct()
        self._ended = Figures()  # of connections that are gone
        self._running = True
        self._thread = threading.Thread(target=self._serve, name=f"link to {target[1]}", daemon=True)

    @property
    def address(self) -> str:
        """Host and port to give to clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def figures(self) -> Figures:
        """The figures of this moment."""
        return self._order(self._sum) if self._thread.is_alive() else self._ended

    def __enter__(self) -> Self:
        self._selector.register(self._bell, selectors.EVENT_READ, self._heed)
        self._watch_listener()
        self._thread.start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection and the listener. May be called again."""
        if self._thread.is_alive():
            self._order(self._end)
            self._thread.join(ANSWER_S)
        if self._listener is not None:
            self._listener.close()

    def cut(self) -> int:
        """Reset all connections of this moment; new ones are accepted. Returns how many there were."""
        return self._order(self._cut)

    def refuse(self) -> int:
        """Refuse new connections until `allow`, and cut the old ones. Returns how many there were."""
        return self._order(self._refuse)

    def allow(self) -> None:
        """Accept connections again, at the same port."""
        self._order(self._allow)

    def stall(self) -> None:
        """Let no byte through in either direction; connections stay open."""
        self._behave(Conduct(to_server=False, to_client=False))

    def half_open(self) -> None:
        """Let what clients send arrive, and hold back what is answered."""
        self._behave(Conduct(to_client=False))

    def slow(self, bytes_per_s: int, delay_s: float) -> None:
        """Let so much through a second, in each direction of each connection, and that so much later."""
        self._behave(Conduct(bytes_per_s=bytes_per_s, delay_s=delay_s))

    def hold_requests(self, api_key: int) -> None:
        """Hold back connections on which requests of this kind of Kafka's came or come; the others flow."""
        self._behave(Conduct(held_request=api_key))

    def break_young(self, ends_after: tuple[int, ...]) -> None:
        """Reset each connection when it has carried so many bytes: the first of the link the first count, and so on."""
        self._behave(Conduct(ends_after=ends_after))

    def flow(self) -> None:
        """End stall, half-open, slow, held requests and early ends: what was held back goes on."""
        self._behave(Conduct())

    def _behave(self, conduct: Conduct) -> None:
        def change() -> None:
            self._conduct = conduct

        self._order(change)

    def _order(self, what: Callable[[], T]) -> T:
        """Have the link's thread do something, between two looks at its sockets."""
        done: Future[T] = Future()

        def do() -> None:
            try:
                done.set_result(what())
            except BaseException as error:  # noqa: BLE001 - raised where it was asked for
                done.set_exception(error)

        self._orders.put(do)
        self._alarm.send(b"!")
        return done.result(ANSWER_S)

    def _serve(self) -> None:
        pause: float | None = None
        while self._running:
            for key, events in self._selector.select(pause):
                key.data(key.fileobj, events)
            pause = self._advance()
        for each in (self._alarm, self._bell):
            each.close()
        self._selector.close()

    def _advance(self) -> float | None:
        """Move what may move; return after how many seconds there is more to move without anybody's doing."""
        now = time.monotonic()
        due = [pair.advance(self._conduct, now) for pair in self._pairs]
        for pair in [pair for pair in self._pairs if pair.ended]:
            self._forget(pair)
        for pair in self._pairs:
            for side, events in pair.wanted(self._conduct):
                self._watch(side, events, pair)
        waits = [at for at in due if at is not None]
        return max(min(waits) - now, 0.0) if waits else None

    def _watch(self, side: socket.socket, events: int, pair: Pair) -> None:
        known = self._selector.get_map().get(side)
        if known is None and events:
            self._selector.register(side, events, pair.ready)
        elif known is not None and not events:
            self._selector.unregister(side)
        elif known is not None and known.events != events:
            self._selector.modify(side, events, pair.ready)

    def _heed(self, bell: Any, events: int) -> None:
        bell.recv(4096)
        while not self._orders.empty():
            self._orders.get()()

    def _watch_listener(self) -> None:
        assert self._listener is not None
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self, listener: Any, events: int) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it left before we came
            return
        server = socket.socket()
        for side in (client, server):
            side.setblocking(False)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.connect_ex(self._target)  # a refusal shows at the first look
        self._pairs.add(Pair(client, server, self._ended.connections))
        self._ended = replace(self._ended, connections=self._ended.connections + 1)

    def _cut(self) -> int:
        count = len(self._pairs)
        for pair in list(self._pairs):
            self._forget(pair)
        self._ended = replace(self._ended, connections_cut=self._ended.connections_cut + count)
        return count

    def _refuse(self) -> int:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        return self._cut()

    def _allow(self) -> None:
        if self._listener is None:
            self._listener = _listen(self.port)
            self._watch_listener()

    def _end(self) -> None:
        for pair in list(self._pairs):
            self._forget(pair)
        self._running = False

    def _forget(self, pair: Pair) -> None:
        """Close a connection: with a reset, unless both sides have ended it in order."""
        self._pairs.discard(pair)
        for side in (pair.client, pair.server):
            with suppress(KeyError):
                self._selector.unregister(side)
            if not pair.ended_in_order:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            side.close()
        left = sum(way.waiting_bytes for way in pair.ways)
        self._ended = replace(
            _with(self._ended, pair),
            connections_broken_young=self._ended.connections_broken_young + pair.broke_young,
            bytes_dropped=self._ended.bytes_dropped + left,
        )

    def _sum(self) -> Figures:
        total = self._ended
        for pair in self._pairs:
            total = _with(total, pair)
        return total


def _with(figures: Figures, pair: Pair) -> Figures:
    return replace(
        figures,
        bytes_carried=figures.bytes_carried + sum(way.carried for way in pair.ways),
        bytes_held_back=figures.bytes_held_back + sum(way.held_back for way in pair.ways),
        bytes_slowed=figures.bytes_slowed + sum(way.slowed for way in pair.ways),
    )


def _listen(port: int) -> socket.socket:
    """Listen on a port; a chosen one is outside of the range from which clients of others get theirs."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return socket.create_server((LOOPBACK, port or free_ports(1)[0]), backlog=128)
        except OSError:
            if port or attempt == ATTEMPTS:
                raise
    raise AssertionError("not reached")
