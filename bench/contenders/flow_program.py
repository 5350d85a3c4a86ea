"""The program that every flow contender is: the same command line, the same calls, measured between the same records.

A record's value begins with 8 digits, how long its call takes (ms), and 20 digits, when it was published (ns since the
epoch), so that every contender makes the very same calls. Standard library only: it is imported in the peers'
environment and by other checkouts too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.contenders.meter import Mark, Meter, between

HANDLERS: Final = ("noop", "timed", "latency")
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
    `broker_pid` is the broker's process, whose CPU time contenders in Python measure too; 0 for none.
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

    def command_line(self) -> list[str]:
        """Return them as arguments of a contender."""
        given = {name: getattr(self, name) for name in self.__slots__ if name != "broker_pid" or self.broker_pid}
        return [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return a parser of these arguments, to which a contender may add its own."""
    made = argparse.ArgumentParser(description=about)
    for name in ("kafka", "topic", "group"):
        made.add_argument(f"--{name}", required=True)
    made.add_argument("--handler", choices=HANDLERS, required=True)
    for name in ("in-flight", "from-record", "to-record"):
        made.add_argument(f"--{name}", type=int, required=True)
    made.add_argument("--limit-s", type=float, required=True)
    made.add_argument("--broker-pid", type=int, default=0)
    return made


def flow_arguments(given: argparse.Namespace) -> FlowArguments:
    """Return the arguments of a parsed command line."""
    return FlowArguments(**{name: getattr(given, name) for name in FlowArguments.__slots__})


def parse(about: str | None, argv: Sequence[str] | None = None) -> FlowArguments:
    """Parse the command line of a contender that has no arguments of its own."""
    return flow_arguments(parser(about).parse_args(argv))


class MeasuredRun:
    """Holds the meter of a contender that runs in this very process, prints its line, and ends the process."""

    def __init__(self, arguments: FlowArguments, at_end: Callable[[], None] = lambda: os._exit(0)) -> None:
        self._at_end = at_end
        self._first: Mark | None = None
        self.meter = Meter((arguments.from_record, arguments.to_record), self._reached, arguments.broker_pid)
        self._limit = threading.Timer(arguments.limit_s, lambda: give_up(arguments, self.meter.calls))
        self._limit.daemon = True
        self._limit.start()

    def _reached(self, mark: Mark) -> None:
        if self._first is None:
            self._first = mark
            return
        self._limit.cancel()
        print(json.dumps(between(self._first, mark)), flush=True)
        self._at_end()


def give_up(arguments: FlowArguments, calls: int) -> None:
    """Print how far it came, and end the process with status 1."""
    text = f"{calls} calls of {arguments.to_record} were over after {arguments.limit_s:g} s: given up"
    print(text, file=sys.stderr, flush=True)
    os._exit(1)


def async_call(handler: str, meter: Meter) -> AsyncCall:
    """Return the handler of this name for one event loop."""

    async def noop(value: bytes) -> None:
        meter.count()

    async def timed(value: bytes) -> None:
        began_ns = meter.began()
        await asyncio.sleep(call_s(value))
        meter.ended(began_ns)

    async def latency(value: bytes) -> None:
        meter.note(age_ns(value))

    return {"noop": noop, "timed": timed, "latency": latency}[handler]


def blocking_call(handler: str, meter: Meter) -> BlockingCall:
    """Return the handler of this name for one thread, and `timed` for any number of them."""
    lock = threading.Lock()

    def noop(value: bytes) -> None:
        meter.count()

    def timed(value: bytes) -> None:
        with lock:
            began_ns = meter.began()
        time.sleep(call_s(value))
        with lock:
            meter.ended(began_ns)

    def latency(value: bytes) -> None:
        meter.note(age_ns(value))

    return {"noop": noop, "timed": timed, "latency": latency}[handler]
