"""Opens and closes the handler, in a task of its own, and waits for neither longer than the process may take to end."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from contextlib import suppress

from processor.fault import Fault
from processor.handlers.open_handler import OpenHandler
from processor.handlers.user_code import place_of
from wait_registry.errors import ConfigurationError, PermanentError, WaitRegistryError

log = logging.getLogger(__name__)

CHECK_EVERY_S = 0.25
CANCELLED_S = 1.0


class HandlerLife:
    """The time between opening and closing a handler.

    Task groups and cancel scopes of the user's belong to the task that enters them: it must leave them too, and they
    cancel it when they fail.

    Args:
        handler: not opened yet.
        fault: gets the failure of what the handler runs in the background.
    """

    def __init__(self, handler: OpenHandler, fault: Fault) -> None:
        self._handler = handler
        self._fault = fault
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._context = contextvars.copy_context()
        self._task = asyncio.create_task(self._live(), name="handler", context=self._context)

    async def open(self, ending: Callable[[], bool]) -> bool:
        """Wait until the handler is open; its context variables are the caller's afterwards.

        Args:
            ending: returns whether the process must end.

        Returns:
            False if the process ends before.

        Raises:
            ConfigurationError: the handler can't be opened.
        """
        while not self._opened.is_set():
            if self._task.done():
                if self._task.cancelled():
                    raise ConfigurationError(
                        "opening the handler (__aenter__) raised CancelledError. Nothing was consumed; start again "
                        "when it can be opened"
                    )
                self._task.result()
            if ending():
                log.warning("the process ends before the handler is open (__aenter__)")
                self._closing.set()
                self._task.cancel()
                await asyncio.wait([self._task], timeout=CANCELLED_S)
                return False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), CHECK_EVERY_S)
        for variable, value in self._context.items():
            variable.set(value)
        return True

    async def close(self, limit_s: float) -> WaitRegistryError | None:
        """Close the handler; if that takes longer than the limit, continue without it.

        Returns:
            The failure, if it failed; it is logged.
        """
        self._closing.set()
        _, late = await asyncio.wait([self._task], timeout=limit_s)
        if late:
            log.warning("closing the handler (__aexit__) hasn't ended in %.1f s: it is abandoned", limit_s)
            return None
        error = asyncio.CancelledError() if self._task.cancelled() else self._task.exception()
        if error is None:
            return None
        log.error("closing the handler (__aexit__) failed", exc_info=error)
        failure = PermanentError(
            f"closing the handler (__aexit__) failed: {type(error).__name__}: {error}{place_of(error)}. No record is "
            "lost: each is settled, registered or not committed"
        )
        failure.__cause__ = error
        return failure

    async def _live(self) -> None:
        await self._handler.open()
        self._opened.set()
        while not self._closing.is_set():
            try:
                await self._closing.wait()
            except asyncio.CancelledError:
                self._fault.report(
                    PermanentError(
                        "what the handler runs in the background has failed: a task group or a cancel scope that "
                        "__aenter__ entered has cancelled its task. The error follows when it is closed"
                    )
                )
        await self._handler.close()
