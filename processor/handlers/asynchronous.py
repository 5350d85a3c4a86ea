"""Handlers that are an ``async def``."""

from __future__ import annotations

from processor.handlers.slots import Slots
from wait_registry.handler import AsyncHandler


class AsynchronousHandler:
    """Calls the user's coroutine function directly: nothing stands between it and the worker.

    Args:
        function: the user's handler.
    """

    def __init__(self, function: AsyncHandler) -> None:
        self.call = function
        self.slots: Slots | None = None

    async def open(self) -> None:
        """Do nothing: a function needs no opening."""

    async def close(self) -> None:
        """Do nothing."""
