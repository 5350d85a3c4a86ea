"""The one thread that polls a client, while the event loop continues."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

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
        closed: Future[None] = Future()
        closed.set_running_or_notify_cancel()  # the thread can't be cancelled

        def run() -> None:
            try:
                self._executor.shutdown()
                work()
            except Exception as error:  # noqa: BLE001 - raised below
                closed.set_exception(error)
            else:
                closed.set_result(None)

        threading.Thread(target=run, name="consumer-close", daemon=True).start()
        try:
            await asyncio.wait_for(asyncio.wrap_future(closed), limit_s)
        except TimeoutError:
            log.warning("timed out after %.1f s closing the consumer; continuing shutdown", limit_s)
