"""How the process ends: the first error that ends it, and an event loop that ends although a handler doesn't."""

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
        limit_s: how long to wait for remaining tasks after their cancellation, s.
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
        log.warning("%d tasks ignored cancellation; abandoning them", len(refusing))


class Fault:
    """Holds the error that ends the process; written from callbacks in any thread, raised by the loop."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """The error, if there is one."""
        return self._error

    def report(self, error: BaseException) -> None:
        """Note an error after which the process can't continue; the first one counts."""
        if self._error is None:
            self._error = error

    def raise_if_any(self) -> None:
        """Raise the error, if there is one."""
        if self._error is not None:
            raise self._error
