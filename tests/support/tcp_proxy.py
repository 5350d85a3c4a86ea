"""A TCP proxy in front of the broker that loses or holds chosen requests or answers: network faults are real ones.

Clients stay behind it: wherever an answer names the broker's address, it puts its own port in its place.
"""

from __future__ import annotations

import asyncio
import re
import struct
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from enum import Enum

from tests.support.network import Conduct, Link, Pair

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
INIT_PRODUCER_ID = 22
END_TXN = 26
HEADER = struct.Struct(">ihhi")
LENGTH_BYTES = 4


class Fate(Enum):
    """What becomes of a request."""

    PASS = "pass"
    LOSE_REQUEST = "lose the request"
    LOSE_ANSWER = "lose the answer"
    HANG_UP = "close its connection instead"
    HOLD = "hold it, and all that follow it on its connection, until `let_go`"


Decide = Callable[[int], Fate]


def pass_each(api_key: int) -> Fate:
    """Let every request pass."""
    return Fate.PASS


# What becomes of an answer, by its request's API key and its bytes: the bytes to pass on, or None to lose it.
Change = Callable[[int, bytes], bytes | None]


class KafkaProxy(Link):
    """Forwards frames of the Kafka protocol.

    ``decide`` is asked for every request, with its API key, and ``change`` for every answer that is let pass; neither
    may wait.
    """

    def __init__(
        self, bootstrap: str, decide: Decide = pass_each, change: Change = lambda api_key, answer: answer
    ) -> None:
        host, _, port = bootstrap.rpartition(":")
        super().__init__((host, int(port)))
        self._decide = decide
        self._change = change
        self._theirs, self._ours = (host.encode() + struct.pack(">i", each) for each in (int(port), self.port))
        self._begun: dict[tuple[Pair, bool], bytearray] = defaultdict(bytearray)
        self._asked: dict[tuple[Pair, int], tuple[int, Fate]] = {}
        self.lost = threading.Event()
        self.held = threading.Event()
        self._let_go = asyncio.Event()

    @property
    def bootstrap_servers(self) -> str:
        return self.address

    def open_with(self, api_key: int) -> int:
        """Return on how many open connections such a request has come.

        A connection whose client has left stays open until the server has answered its last request.
        """
        return sum(api_key in pair.api_keys for pair in list(self._pairs))

    def hold_requests(self, api_key: int) -> None:
        """Hold back every connection on which such a request has come or comes; the others flow."""
        self._behave(Conduct(held_request=api_key))

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._let_go.set)

    async def _let_through(self, pair: Pair, data: bytes, upwards: bool) -> AsyncIterator[bytes]:
        begun = self._begun[pair, upwards]
        begun += data
        while len(begun) >= LENGTH_BYTES and len(begun) >= (end := LENGTH_BYTES + int.from_bytes(begun[:LENGTH_BYTES])):
            frame = bytes(begun[:end])
            del begun[:end]
            passed = await self._request(pair, frame) if upwards else self._answer(pair, frame)
            if passed is None:
                self.lost.set()
            else:
                yield passed

    async def _request(self, pair: Pair, frame: bytes) -> bytes | None:
        _, api_key, _, correlation = HEADER.unpack_from(frame)
        fate = self._decide(api_key)
        self._asked[pair, correlation] = api_key, fate
        pair.api_keys.add(api_key)
        if fate is Fate.HOLD:
            self.held.set()
            await self._let_go.wait()
        if fate is Fate.HANG_UP:
            raise ConnectionAbortedError
        return None if fate is Fate.LOSE_REQUEST else frame

    def _answer(self, pair: Pair, frame: bytes) -> bytes | None:
        (correlation,) = struct.unpack_from(">i", frame, LENGTH_BYTES)
        api_key, fate = self._asked.pop((pair, correlation))
        answer = None if fate is Fate.LOSE_ANSWER else self._change(api_key, frame)
        return answer and answer.replace(self._theirs, self._ours)


# The only broker in an answer about metadata of a flexible version: number, host, port, no rack, no tags. See
# `clients/src/main/resources/common/message/MetadataResponse.json` of Kafka.
_ONE_BROKER = re.compile(rb"\x02.{4}\x0a127\.0\.0\.1.{4}\0\0", re.DOTALL)
_NO_BROKER = b"\x01"


def without_brokers(answer: bytes) -> bytes:
    """Return an answer (its length in front) whose topics are as they were, in a cluster without brokers."""
    emptied, found = _ONE_BROKER.subn(_NO_BROKER, answer[LENGTH_BYTES:], 1)
    assert found, answer
    return struct.pack(">i", len(emptied)) + emptied
