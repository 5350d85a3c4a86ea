"""Records, attempts, a clock and a wait for tests of the processor's parts."""

from __future__ import annotations

import asyncio
import inspect
from array import array
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from processor.calls.attempts import Attempts
from processor.calls.retry_decision import RetryDecision, time_limits
from processor.handlers.python import AsynchronousHandler
from processor.health.stats import Stats
from processor.intake.delivery import Delivery, GroupIdentity
from processor.protocol.partition import Partition
from processor.protocol.record import Entry
from wait_registry.clock import Clock, SystemClock
from wait_registry.handler import HandlerResult, Record
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
PLACE = ("input", 0)
RECORD = Record("input", 0, 1, 2, b"key", b"value", (), 1, "the-id", "group", datetime(2030, 1, 1, tzinfo=UTC))


async def done(record: Record) -> HandlerResult:
    """Handle a record at once."""
    return None


async def endless(record: Record) -> None:
    """Handle a record for longer than any test runs."""
    await asyncio.sleep(3600)


async def swallows_cancellation(record: Record) -> None:
    """Answer when cancelled."""
    with suppress(asyncio.CancelledError):
        await endless(record)


async def fails_when_cancelled(record: Record) -> None:
    """Fail when cancelled."""
    try:
        await endless(record)
    except asyncio.CancelledError:
        raise ValueError("while cleaning up") from None


def delivery(offset: int, value: bytes = b"value", place: TopicPartition = PLACE) -> Delivery:
    """Return a record as the loop takes it from the consumer."""
    topic, partition = place
    times = (TIMESTAMP_CREATE_TIME, 1)
    message = Message(topic=topic, partition=partition, offset=offset, key=b"key", value=value, timestamp=times)
    return Delivery(GroupIdentity("cluster", "group"), place, message, ())


def entries(*offsets: int, place: TopicPartition = PLACE) -> list[Entry]:
    """Return entries of a new assignment, polled at these offsets."""
    partition = Partition(place, 0)
    partition.add(array("q", offsets))
    return [
        Entry(partition, number, offset, delivery(offset, place=place), 5, CLOCK.monotonic(), False)
        for number, offset in enumerate(offsets)
    ]


def attempts_of(handler: Any, stats: Stats | None = None, clock: Clock = CLOCK, **settings: object) -> Attempts:
    """Return the attempts of an opened handler, or of a coroutine function; pauses are half of the longest."""
    opened = AsynchronousHandler(handler) if inspect.iscoroutinefunction(handler) else handler
    values = ProcessorSettings.model_validate(settings)
    decision = RetryDecision(values, time_limits(values), lambda: 0.5)
    return Attempts(opened, values.handler_timeout_s, decision, clock, stats or Stats())


class HaltedClock(SystemClock):
    """Its monotonic time is ``now_s``."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


async def iterate_until(condition: Callable[[], object]) -> None:
    """Give way until the condition holds; the caller limits the time."""
    while not condition():  # noqa: ASYNC110 - what is waited for sets no event
        await asyncio.sleep(0)
