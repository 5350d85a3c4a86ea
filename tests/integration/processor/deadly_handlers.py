"""Handlers for processes that are killed; they write down what they were called for."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from wait_registry.handler import Record


def _note(record: Record) -> None:
    # One short write to a file opened for appending is atomic, and outlives the process.
    with Path(os.environ["CALLS"]).open("ab") as calls:
        calls.write(b"%s %d\n" % (record.wait_id.encode(), record.offset))


async def dies_of_poison(record: Record) -> None:
    """End the process at once on one record."""
    _note(record)
    if record.value == b"poison":
        os._exit(9)


async def slow(record: Record) -> None:
    """Take a while, so that a kill hits records in every state."""
    _note(record)
    await asyncio.sleep(0.05 if record.offset % 10 else 0.5)


async def blocks_for_an_hour(record: Record) -> None:
    """Block the event loop for longer than any test runs."""
    _note(record)
    time.sleep(3600)  # noqa: ASYNC251 - this is the mistake that the test is about


async def blocks_for_seconds(record: Record) -> None:
    """Block the event loop at each call, as a synchronous HTTP client does."""
    _note(record)
    time.sleep(3)  # noqa: ASYNC251 - this is the mistake that the test is about
