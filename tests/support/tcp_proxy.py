"""A TCP proxy in front of the broker that loses or holds chosen requests or answers: network faults are real ones.

Clients stay behind it: wherever an answer names the broker's address, it puts its own port in its place.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Self

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
INIT_PRODUCER_ID = 22
END_TXN = 26
HEADER = struct.Struct(">ihhi")


class Fate(Enum):
    """What becomes of a request."""

    PASS = "pass"
    LOSE_REQUEST = "lose the request"
    LOSE_ANSWER = "lose the answer"
    HANG_UP = "close its connection instead"
    HOLD = "hold it, and all that follow it on its connection, until `let_go`"


Decide = Callable[[int], Fate]
# What becomes of an answer, by its request's API key and its bytes: the bytes to pass on, or None to lose it.
Change = Callable[[int, bytes], bytes | None]


class KafkaProxy:
    """Forwards frames of the Kafka protocol.

    ``decide`` is asked for every request, with its API key, and ``change`` for every answer that is let pass.
    """

    def __init__(self, bootstrap: str, decide: Decide, change: Change = lambda api_key, answer: answer) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._host, self._port = host, int(port)
        self._decide = decide
        self._change = change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.lost = threading.Event()
        self.held = threading.Event()
        self._let_go = threading.Event()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def let_go(self) -> None:
        self._let_go.set()

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for open_socket in (self._listener, *self._sockets):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        self.let_go()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=self._until_closed, args=(target, *arguments), daemon=True)
        thread.start()
        self._threads.append(thread)  # started: the end joins it

    @staticmethod
    def _until_closed(target: Callable[..., None], *arguments: object) -> None:
        with suppress(OSError, EOFError):
            target(*arguments)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            broker = socket.create_connection((self._host, self._port))
            self._sockets += [client, broker]
            asked: dict[int, tuple[int, Fate]] = {}
            self._start(self._requests, client, broker, asked)
            self._start(self._answers, broker, client, asked)

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, Fate]]) -> None:
        while True:
            frame = _frame(client)
            _, api_key, _, correlation = HEADER.unpack_from(frame)
            fate = self._decide(api_key)
            asked[correlation] = api_key, fate
            if fate is Fate.HOLD:
                self.held.set()
                self._let_go.wait()
            if fate is Fate.HANG_UP:
                for end in (client, broker):
                    end.shutdown(socket.SHUT_RDWR)
                return
            if fate is Fate.LOSE_REQUEST:
                self.lost.set()
            else:
                broker.sendall(frame)

    def _answers(self, broker: socket.socket, client: socket.socket, asked: dict[int, tuple[int, Fate]]) -> None:
        own_port = self._listener.getsockname()[1]
        theirs = self._host.encode() + struct.pack(">i", self._port)
        ours = self._host.encode() + struct.pack(">i", own_port)
        while True:
            frame = _frame(broker)
            (correlation,) = struct.unpack_from(">i", frame, 4)
            api_key, fate = asked.pop(correlation)
            answer = None if fate is Fate.LOSE_ANSWER else self._change(api_key, frame)
            if answer is None:
                self.lost.set()
            else:
                client.sendall(answer.replace(theirs, ours))


def _frame(source: socket.socket) -> bytes:
    length = _exactly(source, 4)
    return length + _exactly(source, struct.unpack(">i", length)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    received = source.recv(count, socket.MSG_WAITALL)
    if len(received) < count:
        raise EOFError
    return received


_CORRELATION_BYTES = 4
_THROTTLE_BYTES = 4
# Flexible versions, 12 and 13: see `clients/src/main/resources/common/message/MetadataResponse.json` of Kafka.
_NONE = b"\x01"


def without_brokers(answer: bytes) -> bytes:
    """Return an answer (its length in front) whose topics are as they were, in a cluster without brokers."""
    body = answer[4:]
    begin = _CORRELATION_BYTES + 1 + _THROTTLE_BYTES  # behind the header's tags
    count, at = _varint(body, begin)
    for _ in range(count - 1):
        at += 4  # its number
        at = _text(body, at)  # host
        at += 4  # port
        at = _text(body, at)  # rack
        tags, at = _varint(body, at)
        assert tags == 0, f"{tags} tags of a broker, of which nothing is known here"
    emptied = body[:begin] + _NONE + body[at:]
    return struct.pack(">i", len(emptied)) + emptied


def _text(body: bytes, at: int) -> int:
    length, at = _varint(body, at)
    return at + max(length - 1, 0)


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
