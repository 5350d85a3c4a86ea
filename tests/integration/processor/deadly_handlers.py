"""Handlers for processes that they break or that are killed; each call is written down before it begins."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

from wait_registry.handler import Record

LEAK_BYTES = 16 << 20

_leaked: list[bytes] = []


def _note(record: Record) -> None:
    # One short write to a file opened for appending is atomic, and outlives the process.
    with Path(os.environ["CALLS"]).open("ab") as calls:
        calls.write(b"%s %d %d %d\n" % (record.wait_id.encode(), os.getpid(), record.partition, record.offset))


async def dies_of_poison(record: Record) -> None:
    """End the process at once on one record."""
    _note(record)
    if record.value == b"poison":
        os._exit(9)


async def slow(record: Record) -> None:
    """Take a while, so that a kill hits records in every state."""
    _note(record)
    await asyncio.sleep(0.05 if record.offset % 10 else 0.5)


async def takes_a_while(record: Record) -> None:
    """Be done after a moment."""
    _note(record)
    await asyncio.sleep(0.02)


def hangs(record: Record) -> None:
    """Never return from records that say so."""
    _note(record)
    if record.value == b"hang":
        threading.Event().wait()


async def leaks(record: Record) -> None:
    """Keep some more memory with every record."""
    _note(record)
    _leaked.append(os.urandom(LEAK_BYTES))


async def blocks_for_an_hour(record: Record) -> None:
    """Block the event loop for longer than any test runs."""
    _note(record)
    time.sleep(3600)  # noqa: ASYNC251 - this is the mistake that the test is about


TOGETHER = 15

_together = asyncio.Barrier(TOGETHER)


async def blocks_for_seconds(record: Record) -> None:
    """Block the event loop at each call, as a synchronous HTTP client does, once fifteen calls run."""
    _note(record)
    await _together.wait()
    time.sleep(3)  # noqa: ASYNC251 - this is the mistake that the test is about
