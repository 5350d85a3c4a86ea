"""An event loop that ends although a handler refuses to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


def run_and_end(main: Coroutine[Any, Any, None], limit_s: float) -> None:
    """Run a coroutine on an event loop of its own, as ``asyncio.run`` does, which waits for all tasks without a limit.

    Args:
        main: what it raises comes out.
        limit_s: how long tasks that are left over are waited for after their cancellation, s.
    """
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main)
    finally:
        try:
            loop.run_until_complete(_end_tasks(limit_s))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _end_tasks(limit_s: float) -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return
    _, refusing = await asyncio.wait(left, timeout=limit_s)
    if refusing:
        log.warning("%d tasks don't end although they were cancelled: left behind", len(refusing))
