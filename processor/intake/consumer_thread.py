"""The one thread that polls a client, while the event loop continues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from wait_registry.daemon_threads import in_daemon_thread

log = logging.getLogger(__name__)

T = TypeVar("T")


class ConsumerThread:
    """Runs the calls of a client that wait, one after the other."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="consumer")

    async def poll(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a poll and return its result."""
        return await asyncio.wrap_future(self._executor.submit(work, *arguments))

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run something else when the poll has ended; RuntimeError after `close`."""
        return self._executor.submit(work, *arguments)

    async def close(self, work: Callable[[], None], limit_s: float) -> None:
        """Run the last call after what runs, and don't wait for it for longer than a limit, s.

        librdkafka waits for an absent coordinator without a limit, so a daemon thread does it.
        """

        def run() -> None:
            self._executor.shutdown()
            work()

        try:
            await asyncio.wait_for(in_daemon_thread("consumer-close", run), limit_s)
        except TimeoutError:
            log.warning("timed out after %.1f s closing the consumer; continuing shutdown", limit_s)
