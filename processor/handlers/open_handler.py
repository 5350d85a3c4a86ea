"""What every kind of handler looks like to the workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from wait_registry.handler import HandlerResult, Record

# Which attempt of this delivery is running, from 1; handlers that send it to a service read it in `call`.
CURRENT_ATTEMPT: Final[ContextVar[int]] = ContextVar("CURRENT_ATTEMPT", default=1)


class Slots(asyncio.Semaphore):
    """Calls in threads that may run at once; used from the event loop's thread.

    Attributes:
        blocked: how many calls continue after their limit, each in its slot.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.blocked = 0

    def block(self) -> None:
        """Note that a call continues after its limit, in its slot."""
        self.blocked += 1

    def unblock(self) -> None:
        """Note that such a call has ended."""
        self.blocked -= 1


class OpenHandler:
    """A handler made ready for the event loop; what it has besides its methods is valid after `open`.

    Attributes:
        call: one attempt at a record, which runs in a task of its own and is cancelled when it is over its limit.
        in_threads: whether calls run in threads, which can't be cancelled.
        slots: what bounds calls that can't be cancelled, if anything: the caller acquires one before each call, and the
            handler releases it when the call has really ended.
    """

    call: Callable[[Record], Awaitable[HandlerResult]]
    in_threads: bool = False
    slots: Slots | None = None

    async def open(self) -> None:
        """Get ready, once per process, before the first record; whatever it raises ends the process."""

    async def close(self) -> None:
        """Give everything back, once, after the last record."""
