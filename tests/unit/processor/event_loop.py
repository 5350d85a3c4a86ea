"""Letting an event loop take turns until something is so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def iterate_until(condition: Callable[[], object]) -> None:
    """Give way until the condition holds; the caller limits the time."""
    while not condition():  # noqa: ASYNC110 - what is waited for sets no event
        await asyncio.sleep(0)
