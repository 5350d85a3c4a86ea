"""The calls that contenders make for each record, metered; the same for all, blocking or not.

Standard library only: it is imported in the peers' environment too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from bench.contenders.meter import MS_PER_S, Meter
from bench.contenders.payload import call_ms, sent_ns

AsyncCall = Callable[[bytes], Awaitable[None]]
BlockingCall = Callable[[bytes], None]


def async_call(handler: str, meter: Meter) -> AsyncCall:
    """Return the handler of this name for one event loop."""

    async def noop(value: bytes) -> None:
        meter.count()

    async def timed(value: bytes) -> None:
        ordered_ms = call_ms(value)
        began_ns = meter.began()
        await asyncio.sleep(ordered_ms / MS_PER_S)
        meter.ended(began_ns, ordered_ms)

    async def latency(value: bytes) -> None:
        meter.note(time.time_ns() - sent_ns(value))

    return {"noop": noop, "timed": timed, "latency": latency}[handler]


def blocking_call(handler: str, meter: Meter) -> BlockingCall:
    """Return the handler of this name for one thread, and `timed` for any number of them."""
    lock = threading.Lock()

    def noop(value: bytes) -> None:
        meter.count()

    def timed(value: bytes) -> None:
        ordered_ms = call_ms(value)
        with lock:
            began_ns = meter.began()
        time.sleep(ordered_ms / MS_PER_S)
        with lock:
            meter.ended(began_ns, ordered_ms)

    def latency(value: bytes) -> None:
        meter.note(time.time_ns() - sent_ns(value))

    return {"noop": noop, "timed": timed, "latency": latency}[handler]
