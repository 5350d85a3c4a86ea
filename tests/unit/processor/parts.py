"""Entries, batches, a clock and a wait for tests of the processor's parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from processor.assigned_partition import AssignedPartition
from processor.committable import RegistrationBatch
from processor.entry import Entry, Lifetime
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.records.original import Original

LONG = Lifetime(1_900_000_000_000, datetime(2030, 3, 17, tzinfo=UTC), 1e12, 1e12, 0.0)


RECORD = Record("input", 0, 1, 2, b"key", b"value", (), 1, "the-id", "group", datetime(2030, 1, 1, tzinfo=UTC))


async def endless(record: Record) -> None:
    """Handle a record for longer than any test runs."""
    await asyncio.sleep(3600)


def entry(owner: AssignedPartition, offset: int, lifetime: Lifetime = LONG, size: int = 1) -> Entry:
    """Return an entry consumed from ``owner`` at ``offset``."""
    original = Original(owner.topic, owner.partition, offset, 0, "create", b"key", b"value", ())
    return Entry(original, None, 1, f"id-{owner.partition}-{offset}", owner, offset, size, lifetime)


def batch(*entries: Entry) -> RegistrationBatch:
    """Return a batch of entries in this order; refusals and completions are ignored."""
    ends = {one.owner: one.offset + 1 for one in entries}
    return RegistrationBatch(list(entries), ends, 0, lambda refused, error: None, lambda completed, message: None)


def message(offset: int) -> Message:
    """Return a record as the consumer polls it."""
    return Message(
        topic="input", partition=0, offset=offset, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 1)
    )


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
