"""One proxied connection: two sockets, and what waits between them in each direction."""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass

from tests.support.kafka_requests import Requests

READ_BYTES = 262_144
# Beyond it the sender feels that nothing goes on; a network holds no more either.
WAITING_BYTES = 1_048_576
# A slow link sends ten times a second or so.
SLOW_STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a link treats what it carries: whether it goes on in each direction, how fast (0: as it comes), how late.

    With ``held_request`` nothing goes on to the server on connections on which such a request of Kafka's ever came, by
    its API key; all other connections flow. With ``ends_after`` no connection lives for long: by its number each has
    one of these counts of bytes, both ways together, and is broken off with them.
    """

    to_server: bool = True
    to_client: bool = True
    bytes_per_s: int = 0
    delay_s: float = 0.0
    held_request: int | None = None
    ends_after: tuple[int, ...] = ()

    def may_go(self, came: float, free_at: float) -> float:
        """Return from when on bytes may go on that came then, on a way that is busy until ``free_at``."""
        late = came + self.delay_s if self.delay_s else 0.0
        return max(late, free_at) if self.bytes_per_s else late


class Way:
    """One direction of one connection."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.carried = self.held_back = self.slowed = 0
        self.waiting_bytes = 0
        self.source_ended = False
        self.ended = False  # and the target knows
        self.readable = False
        self._waiting: deque[tuple[float, bytes]] = deque()  # when it came
        self._blocked = False  # the target takes no more now
        self._free_at = 0.0  # when a slow link may send again

    @property
    def wants_more(self) -> bool:
        """Whether the source is to be watched for more."""
        return not self.source_ended and self.waiting_bytes < WAITING_BYTES

    @property
    def is_blocked(self) -> bool:
        """Whether something waits for the target alone."""
        return self._blocked

    def target_takes(self) -> None:
        """Note that the target can be written to again."""
        self._blocked = False

    def take(self) -> bytes:
        """Read what has come, and return it.

        Raises:
            OSError: the source ended the connection with an error.
        """
        self.readable = False
        try:
            data = self.source.recv(READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.source_ended = True
            return b""
        self._waiting.append((time.monotonic(), data))
        self.waiting_bytes += len(data)
        return data

    def send(self, conduct: Conduct, now: float, most: int) -> float | None:
        """Write what may go on, so many bytes at most; returns when more may, None when that isn't a question of time.

        Raises:
            OSError: the target has ended the connection.
        """
        until = self.carried + most
        while self._waiting and not self._blocked and self.carried < until:
            came, data = self._waiting[0]
            at = conduct.may_go(came, self._free_at)
            if at > now:
                return at
            allowed = max(int(conduct.bytes_per_s * SLOW_STEP_S), 1) if conduct.bytes_per_s else len(data)
            self._write(came, data, min(allowed, until - self.carried))
            if conduct.bytes_per_s:
                self._free_at = now + min(allowed, len(data)) / conduct.bytes_per_s
        if self.source_ended and not self._waiting and not self.ended:
            self.ended = True
            self.target.shutdown(socket.SHUT_WR)
        return None

    def _write(self, came: float, data: bytes, allowed: int) -> None:
        try:
            sent = self.target.send(memoryview(data)[:allowed])
        except BlockingIOError:
            self._blocked = True
            return
        self.carried += sent
        self.waiting_bytes -= sent
        if sent == len(data):
            self._waiting.popleft()
        else:
            self._waiting[0] = (came, data[sent:])


class Pair:
    """One connection of a client, and ours to the server in its name; the link's first one has the number 0."""

    def __init__(self, client: socket.socket, server: socket.socket, number: int = 0) -> None:
        self.client = client
        self.server = server
        self.number = number
        self.broke_young = False
        self.to_server = Way(client, server)
        self.to_client = Way(server, client)
        self.ways = (self.to_server, self.to_client)
        self._requests = Requests()
        self._broken: set[socket.socket] = set()
        self._over = False

    @property
    def ended(self) -> bool:
        """Whether both sides know that it is over."""
        return self._over or self.ended_in_order

    @property
    def ended_in_order(self) -> bool:
        """Whether both have said their last byte, and the other has it."""
        return all(way.ended for way in self.ways)

    def ready(self, side: socket.socket, events: int) -> None:
        """Note what a socket is ready for; `advance` does it."""
        for way in self.ways:
            if events & selectors.EVENT_READ and way.source is side:
                way.readable = True
            if events & selectors.EVENT_WRITE and way.target is side:
                way.target_takes()

    def advance(self, conduct: Conduct, now: float) -> float | None:
        """Read and write what can be; returns when there is more to do, None when that isn't a question of time."""
        due: list[float] = []
        for way in self.ways:
            self._take(way, conduct)
            if self._is_open(way, conduct):
                at = self._send(way, conduct, now)
                due += [] if at is None else [at]
        # Who has broken off is known to the other when the way there is open.
        if any(way.source in self._broken and self._is_open(way, conduct) for way in self.ways):
            self._over = True
        if self._bytes_left(conduct) <= 0:
            self._over = self.broke_young = True
        return min(due, default=None)

    def wanted(self, conduct: Conduct) -> list[tuple[socket.socket, int]]:
        """Return which events to wait for, 0 for none."""
        wishes = []
        for side, outgoing, incoming in (
            (self.client, self.to_server, self.to_client),
            (self.server, self.to_client, self.to_server),
        ):
            open_ = self._is_open(incoming, conduct)
            broken = side in self._broken
            read = selectors.EVENT_READ if outgoing.wants_more and not broken else 0
            write = selectors.EVENT_WRITE if incoming.is_blocked and open_ and not broken else 0
            wishes.append((side, read | write))
        return wishes

    def _bytes_left(self, conduct: Conduct) -> int:
        if not conduct.ends_after:
            return sys.maxsize
        return conduct.ends_after[self.number % len(conduct.ends_after)] - sum(way.carried for way in self.ways)

    def _is_open(self, way: Way, conduct: Conduct) -> bool:
        if way is self.to_client:
            return conduct.to_client
        return conduct.to_server and conduct.held_request not in self._requests.seen

    def _take(self, way: Way, conduct: Conduct) -> None:
        if not way.readable:
            return
        try:
            data = way.take()
        except OSError:
            self._broken.add(way.source)
            return
        if way is self.to_server:
            self._requests.feed(data)
        way.held_back += 0 if self._is_open(way, conduct) else len(data)
        way.slowed += len(data) if conduct.bytes_per_s or conduct.delay_s else 0

    def _send(self, way: Way, conduct: Conduct, now: float) -> float | None:
        if way.target in self._broken:
            return None
        try:
            return way.send(conduct, now, max(self._bytes_left(conduct), 0))
        except OSError:
            self._broken.add(way.target)
            return None
