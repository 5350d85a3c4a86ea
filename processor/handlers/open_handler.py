"""What every kind of handler looks like to the workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from processor.handlers.slots import Slots
from wait_registry.handler import HandlerResult, Record


class OpenHandler(Protocol):
    """A handler made ready for the event loop.

    ``call(record)`` is one attempt; it is cancelled when it is over its limit. When ``slots`` is given, the caller
    takes a slot before each call, and the handler gives it back when the call has really ended.
    """

    @property
    def call(self) -> Callable[[Record], Awaitable[HandlerResult]]:
        """One attempt; look it up after `open`."""

    @property
    def slots(self) -> Slots | None:
        """What bounds calls that can't be cancelled; look it up after `open`."""

    async def open(self) -> None:
        """Get ready, once per process, before the first record; whatever it raises ends the process."""

    async def close(self) -> None:
        """Give everything back, once, after the last record."""
