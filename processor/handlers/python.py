"""Handlers in Python: an ``async def``, a plain function that runs in threads, or a class that is opened once."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from processor.handlers.descriptors import NoThreadError
from processor.handlers.open_handler import OpenHandler, Slots
from processor.handlers.user_code import place_of
from wait_registry.daemon_threads import DaemonThreads
from wait_registry.errors import ConfigurationError
from wait_registry.handler import AsyncHandler, HandlerResult, PlainHandler, Record


class AwaitableAnswerError(ConfigurationError):
    """A plain function returned something to await: the record hasn't been tried, and none would be."""


class AsynchronousHandler(OpenHandler):
    """Calls the user's coroutine function directly, without a wrapper.

    Args:
        function: the user's handler.
    """

    def __init__(self, function: AsyncHandler) -> None:
        self.call = function


class PlainFunctionHandler(OpenHandler):
    """Runs the user's function in a thread.

    A thread can't be cancelled: a call over its limit keeps its slot until it returns, and what it returns then is
    ignored. The next attempt of that record takes another slot, so it waits while all are blocked.

    With ordering, such a call isn't over before the function has returned: until then neither the next attempt nor a
    later record of the same key may start (O1). What the function returns counts, as it does for coroutines.

    Args:
        function: the user's handler.
        max_in_flight: threads at most.
        ordered: whether records have an order.
    """

    def __init__(self, function: PlainHandler, max_in_flight: int, ordered: bool = False) -> None:
        self._function = function
        self._threads = DaemonThreads(max_in_flight, "handler")
        self._slots = Slots(max_in_flight)
        self.slots = None if ordered else self._slots
        self.in_threads = True

    async def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    async def call(self, record: Record) -> HandlerResult:
        """Run one attempt; the caller has acquired a slot if it can, which is released when the function returns.

        Raises:
            NoThreadError: it hasn't begun; the slot is released.
            AwaitableAnswerError: the function returned a coroutine: that is its kind, whatever the record.
        """
        if self.slots is None:
            await self._slots.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Result] = loop.create_future()
        call = _Call(ended, self._slots)
        try:
            # What the user's own tracing calls the current span is the attempt's in the thread too.
            context = contextvars.copy_context()
            self._threads.submit(lambda: call.report(loop, context.run(_run, self._function, record)))
        except RuntimeError as error:
            self._slots.release()
            raise NoThreadError(
                f"{error}, {self._threads.started} handlers run in threads already. Allow the process more threads "
                "(ulimit -u, the container's pids limit), or lower processor.max_in_flight."
            ) from error
        try:
            result = await (_to_the_end(ended) if self.slots is None else asyncio.shield(ended))
        except asyncio.CancelledError:
            call.abandon()
            raise
        if isinstance(result.error, StopIteration):
            # A coroutine can't raise it.
            raise RuntimeError("the handler raised StopIteration")
        if result.error is not None:
            raise result.error
        if result.answer is not None and inspect.isawaitable(result.answer):
            if inspect.iscoroutine(result.answer):
                result.answer.close()
            raise AwaitableAnswerError(
                f"the handler is a plain function that returned an awaitable ({type(result.answer).__name__}), which "
                "isn't awaited, so nothing was done. Make it an async def, also each decorator's inner function"
            )
        return result.answer


async def _to_the_end(ended: asyncio.Future[_Result]) -> _Result:
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(ended)
    return ended.result()


@dataclass(eq=False, repr=False)
class ContextualHandler(OpenHandler):
    """Enters the user's object before the first record and leaves it at the end of the drain.

    Args:
        name: how the settings name the class.
        instance: the user's object, an async context manager; what entering it returns has the method ``handle``.
        handler_of: returns the handler for ``handle``, given the settings' name of it.
    """

    name: str
    instance: AbstractAsyncContextManager[Any]
    handler_of: Callable[[str, Callable[..., Any]], OpenHandler]
    _inner: OpenHandler | None = field(default=None, init=False)

    async def open(self) -> None:
        """Enter the object.

        Raises:
            ConfigurationError: entering it failed, or what it gives has no method ``handle`` that can be a handler.
        """
        try:
            entered = await self.instance.__aenter__()
        except (Exception, SystemExit) as error:
            raise ConfigurationError(
                f"handler {self.name!r}: opening it (__aenter__) failed: {type(error).__name__}: {error}"
                f"{place_of(error)}. Nothing was consumed; start again when it can be opened"
            ) from error
        handle = getattr(entered, "handle", None)
        if not callable(handle):
            raise ConfigurationError(
                f"handler {self.name!r}: entering it gave a {type(entered).__name__}, without a method handle(record)"
            )
        self._inner = inner = self.handler_of(f"{self.name}.handle", handle)
        self.call, self.in_threads, self.slots = inner.call, inner.in_threads, inner.slots

    async def close(self) -> None:
        """Leave the object."""
        if self._inner is not None:
            await self._inner.close()
            await self.instance.__aexit__(None, None, None)


class _Result(NamedTuple):
    """What a call has come to.

    It is the future's result in either case: a future keeps the traceback of its exception, with the frames that refer
    to the future and the record.
    """

    answer: HandlerResult
    error: BaseException | None


class _Call:
    """One running call, seen from the event loop's thread."""

    def __init__(self, ended: asyncio.Future[_Result], slots: Slots) -> None:
        self._ended = ended
        self._slots = slots
        self._abandoned = False

    def report(self, loop: asyncio.AbstractEventLoop, result: _Result) -> None:
        """Hand the result to the event loop (called in the handler's thread)."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._end, result)

    def abandon(self) -> None:
        """Stop waiting for the call; it keeps its slot."""
        if not self._ended.done():
            self._abandoned = True
            self._slots.block()

    def _end(self, result: _Result) -> None:
        self._slots.release()
        if self._abandoned:
            self._slots.unblock()
            self._ended.cancel()
        else:
            self._ended.set_result(result)


def _run(function: PlainHandler, record: Record) -> _Result:
    # The copied context shares this object.
    decimal.setcontext(decimal.getcontext().copy())
    try:
        return _Result(function(record), None)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises decides about its record alone
        return _Result(None, error)
