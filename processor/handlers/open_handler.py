"""What every kind of handler looks like to the workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, Protocol

from wait_registry.handler import HandlerResult, Record

# Which attempt of this delivery is running, from 1; handlers that send it to a service read it in `call`.
CURRENT_ATTEMPT: Final[ContextVar[int]] = ContextVar("CURRENT_ATTEMPT", default=1)


class Slots:
    """A counted pool, used from the event loop's thread.

    Args:
        count: calls that may run at once.
    """

    def __init__(self, count: int) -> None:
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

    def block(self) -> None:
        """Note that a call continues after its limit, in its slot."""
        self.blocked += 1

    def unblock(self) -> None:
        """Note that such a call has ended."""
        self.blocked -= 1

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _pass_on(self, waiter: asyncio.Future[None]) -> None:
        if waiter.done() and not waiter.cancelled():
            self._wake()


class OpenHandler(Protocol):
    """A handler made ready for the event loop.

    ``call(record)`` is one attempt; it is cancelled when it is over its limit. When ``slots`` is given, the caller
    takes a slot before each call, and the handler gives it back when the call has really ended.
    """

    @property
    def call(self) -> Callable[[Record], Awaitable[HandlerResult]]:
        """One attempt; look it up after `open`."""

    @property
    def in_threads(self) -> bool:
        """Whether calls run in threads, which can't be cancelled; look it up after `open`."""

    @property
    def in_own_tasks(self) -> bool:
        """Whether each attempt needs a task of its own, since calls run the user's coroutines; look it up after `open`.

        What such a call leaves behind (timers, watching tasks, cancel scopes) may cancel its task later.
        """

    @property
    def slots(self) -> Slots | None:
        """What bounds calls that can't be cancelled; look it up after `open`."""

    async def open(self) -> None:
        """Get ready, once per process, before the first record; whatever it raises ends the process."""

    async def close(self) -> None:
        """Give everything back, once, after the last record."""
