"""The program that every flow contender is: the same arguments, the same calls, measured between the same records.

A program takes one argument, the JSON of `FlowArguments`. A record's value begins with 8 digits, how long its call
takes (ms), and 20 digits, when it was published (ns since the epoch), so that every contender makes the very same
calls. Standard library only: it is imported in the peers' environment and by other checkouts too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bench.contenders.meter import Mark, Meter, between

CALL_DIGITS: Final = 8
HEAD_BYTES: Final = 28

AsyncCall = Callable[[bytes], Awaitable[None]]
BlockingCall = Callable[[bytes], None]


def value_of(call_ms: int, sent_ns: int, filler: bytes) -> bytes:
    """Return a record's value."""
    return b"%08d%020d" % (call_ms, sent_ns) + filler


def call_s(value: bytes) -> float:
    """Return how long the record's call takes, s."""
    return int(value[:CALL_DIGITS]) / 1000


def age_ns(value: bytes) -> int:
    """Return how long ago the record was published, ns."""
    return time.time_ns() - int(value[CALL_DIGITS:HEAD_BYTES])


@dataclass(frozen=True, slots=True)
class FlowArguments:
    """What to consume with how many calls at once, how to handle it, and between the ends of which calls to measure.

    Of the handlers `noop` does nothing, `timed` sleeps as long as the value says, `latency` notes the record's age.
    `broker_pid` is the broker's process, whose CPU time contenders in Python measure too; 0 for none. `options` are
    the contender's own.
    """

    kafka: str
    topic: str
    group: str
    in_flight: int
    handler: str
    from_record: int
    to_record: int
    limit_s: float
    broker_pid: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return them as the argument of a program."""
        return json.dumps(asdict(self))


class MeasuredRun:
    """Holds the meter of a contender that runs in this very process, prints its line, and ends the process."""

    def __init__(self, arguments: FlowArguments, at_end: Callable[[], None] = lambda: os._exit(0)) -> None:
        self._arguments = arguments
        self._at_end = at_end
        self._first: Mark | None = None
        self.meter = Meter((arguments.from_record, arguments.to_record), self._reached, arguments.broker_pid)
        self._limit = threading.Timer(arguments.limit_s, self._give_up)
        self._limit.daemon = True
        self._limit.start()

    def _reached(self, mark: Mark) -> None:
        if self._first is None:
            self._first = mark
            return
        self._limit.cancel()
        print(json.dumps(between(self._first, mark)), flush=True)
        self._at_end()

    def _give_up(self) -> None:
        """End the process with status 1."""
        print(
            f"{self.meter.calls} calls of {self._arguments.to_record} were over: given up", file=sys.stderr, flush=True
        )
        os._exit(1)


def async_call(handler: str, meter: Meter) -> AsyncCall:
    """Return the handler of this name for one event loop."""

    async def noop(value: bytes) -> None:
        meter.count()

    async def timed(value: bytes) -> None:
        meter.began()
        await asyncio.sleep(call_s(value))
        meter.ended()

    async def latency(value: bytes) -> None:
        meter.note(age_ns(value))

    return {"noop": noop, "timed": timed, "latency": latency}[handler]


def blocking_call(handler: str, meter: Meter) -> BlockingCall:
    """Return the handler of this name for one thread, and `timed` for any number of them."""
    lock = threading.Lock()

    def timed(value: bytes) -> None:
        with lock:
            meter.began()
        time.sleep(call_s(value))
        with lock:
            meter.ended()

    calls: dict[str, BlockingCall] = {
        "noop": lambda _: meter.count(),
        "latency": lambda value: meter.note(age_ns(value)),
        "timed": timed,
    }
    return calls[handler]
