"""Handlers that are a class: an async context manager, opened once per process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from processor.handlers.asynchronous import AsynchronousHandler
from processor.handlers.open_handler import OpenHandler
from processor.handlers.plain import PlainFunctionHandler
from processor.handlers.signature import is_asynchronous, require_one_parameter
from processor.handlers.slots import Slots
from processor.handlers.user_code import place_of
from wait_registry.errors import ConfigurationError
from wait_registry.handler import HandlerResult, Record


class ContextualHandler:
    """Enters the user's object before the first record and leaves it at the end of the drain.

    Args:
        name: how the settings name the class.
        instance: the user's object, an async context manager; what entering it returns has the method ``handle``.
        max_in_flight: threads at most, when ``handle`` is a plain function.
    """

    def __init__(self, name: str, instance: AbstractAsyncContextManager[Any], max_in_flight: int) -> None:
        self._name = name
        self._instance = instance
        self._max_in_flight = max_in_flight
        self._inner: OpenHandler | None = None

    @property
    def slots(self) -> Slots | None:
        """Those of ``handle`` when it is a plain function."""
        return None if self._inner is None else self._inner.slots

    @property
    def call(self) -> Callable[[Record], Awaitable[HandlerResult]]:
        """The entered object's ``handle``; ConfigurationError before `open`."""
        if self._inner is None:
            raise ConfigurationError(f"handler {self._name!r} was used before it was opened")
        return self._inner.call

    async def open(self) -> None:
        """Enter the object.

        Raises:
            ConfigurationError: entering it failed, or what it gives has no method ``handle`` with one parameter.
        """
        try:
            entered = await self._instance.__aenter__()
        except Exception as error:
            raise ConfigurationError(
                f"handler {self._name!r}: opening it (__aenter__) failed: {type(error).__name__}: {error}"
                f"{place_of(error)}. Nothing was consumed; start again when it can be opened"
            ) from error
        handle = getattr(entered, "handle", None)
        if not callable(handle):
            raise ConfigurationError(
                f"handler {self._name!r}: entering it gave a {type(entered).__name__}, without a method handle(record)"
            )
        require_one_parameter(f"{self._name}.handle", handle)
        if is_asynchronous(handle):
            self._inner = AsynchronousHandler(handle)
        else:
            self._inner = PlainFunctionHandler(handle, self._max_in_flight)

    async def close(self) -> None:
        """Leave the object."""
        if self._inner is not None:
            await self._inner.close()
            await self._instance.__aexit__(None, None, None)
