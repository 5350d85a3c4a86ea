"""A handler of a few microseconds, for loads that are limited by nothing else; now and then a record takes its time."""

from __future__ import annotations

import asyncio

from wait_registry.handler import Record

# Rare enough to leave the throughput alone, frequent enough that a kill hits some.
SLOW_EVERY = 97
SLOW_S = 2.0


async def done(record: Record) -> None:
    """Accept everything, one in a hundred after two seconds."""
    if record.offset % SLOW_EVERY == 0:
        await asyncio.sleep(SLOW_S)
