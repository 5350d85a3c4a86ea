"""Slots of handlers that can't be cancelled: a call that times out keeps its slot until it returns."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A counted pool, used from the event loop's thread.

    Args:
        count: calls that may run at once.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.free = count
        self.blocked = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a free slot and take it."""
        while self.free == 0:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._pass_on(waiter)
                raise
        self.free -= 1

    def give(self) -> None:
        """Give a slot back."""
        self.free += 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _pass_on(self, waiter: asyncio.Future[None]) -> None:
        if waiter.done() and not waiter.cancelled():
            self._wake()
