"""Handlers that are a plain function: run in threads, at most N at once."""

from __future__ import annotations

import asyncio
import contextvars
from typing import NamedTuple

from processor.handlers.slots import Slots
from processor.handlers.threads import NoThreadError, Threads
from wait_registry.handler import HandlerResult, PlainHandler, Record


class PlainFunctionHandler:
    """Runs the user's function in a thread.

    A thread can't be cancelled: a call over its limit keeps its slot until it returns, and what it returns then is
    ignored. The next attempt of that record takes another slot, so it waits while all are blocked.

    Args:
        function: the user's handler.
        max_in_flight: threads at most.
    """

    def __init__(self, function: PlainHandler, max_in_flight: int) -> None:
        self._function = function
        self._threads = Threads(max_in_flight)
        self.slots: Slots | None = Slots(max_in_flight)

    async def open(self) -> None:
        """Do nothing: threads start as they are needed."""

    async def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    async def call(self, record: Record) -> HandlerResult:
        """Run one attempt; the caller has taken a slot, which is given back when the function returns.

        Raises:
            NoThreadError: it hasn't begun; the slot is given back.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Result] = loop.create_future()
        call = _Call(ended, self.slots)
        try:
            # What the user's own tracing calls the current span is the attempt's in the thread too.
            context = contextvars.copy_context()
            self._threads.submit(lambda: call.report(loop, context.run(_run, self._function, record)))
        except NoThreadError:
            if self.slots is not None:
                self.slots.give()
            raise
        try:
            result = await asyncio.shield(ended)
        except asyncio.CancelledError:
            call.abandon()
            raise
        if isinstance(result.error, StopIteration):
            # A coroutine can't raise it.
            raise RuntimeError("the handler raised StopIteration")
        if result.error is not None:
            raise result.error
        return result.answer


class _Result(NamedTuple):
    """What a call has come to.

    It is the future's result in either case: a future keeps the traceback of its exception, with the frames that refer
    to the future and the record.
    """

    answer: HandlerResult
    error: BaseException | None


class _Call:
    """One running call, seen from the event loop's thread."""

    def __init__(self, ended: asyncio.Future[_Result], slots: Slots | None) -> None:
        self._ended = ended
        self._slots = slots
        self._abandoned = False

    def report(self, loop: asyncio.AbstractEventLoop, result: _Result) -> None:
        """Hand the result to the event loop (called in the handler's thread)."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._end, result)

    def abandon(self) -> None:
        """Stop waiting for the call; it keeps its slot."""
        if self._slots is not None and not self._ended.done():
            self._abandoned = True
            self._slots.blocked += 1

    def _end(self, result: _Result) -> None:
        if self._slots is not None:
            self._slots.blocked -= self._abandoned
            self._slots.give()
        if self._abandoned:
            self._ended.cancel()
        else:
            self._ended.set_result(result)


def _run(function: PlainHandler, record: Record) -> _Result:
    try:
        return _Result(function(record), None)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises decides about its record alone
        return _Result(None, error)
