"""The handlers of all routes, as one handler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from processor.handlers.loading import load_handler
from processor.handlers.open_handler import OpenHandler
from processor.handlers.router import Router
from wait_registry.errors import ConfigurationError
from wait_registry.handler import HandlerResult, Record
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.telemetry.tracing import HttpHeadersSource


class RoutedHandler(OpenHandler):
    """Calls the handler of a record's route.

    It has no slots: with routes, calls in threads last until their functions return, so no slot outlives its call.

    Args:
        router: numbers the routes.
        names: the name of the handler of each route, and last of the one for records that take none.
        handlers: by name, not opened yet; routes may share one.
    """

    def __init__(self, router: Router, names: Sequence[str], handlers: Mapping[str, OpenHandler]) -> None:
        self._route_of = router.route_of
        self._of_routes = [handlers[name] for name in names]
        self._handlers = list(handlers.values())
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        """Open each handler once; if one can't be opened, close those that are open."""
        async with AsyncExitStack() as opened:
            for handler in self._handlers:
                await handler.open()
                opened.push_async_callback(handler.close)
            self._opened = opened.pop_all()
        self.in_threads = any(handler.in_threads for handler in self._handlers)

    async def close(self) -> None:
        """Close each handler, the last one first."""
        await self._opened.aclose()

    async def call(self, record: Record) -> HandlerResult:
        """Run one attempt with the handler of the record's route."""
        return await self._of_routes[self._route_of(record)].call(record)


def load_handlers(settings: ProcessorSettings, trace_headers: HttpHeadersSource | None = None) -> OpenHandler:
    """Find and check the handler, or those of all routes.

    Args:
        settings: ``routes`` and ``handler`` name what is called.
        trace_headers: for HTTP and gRPC handlers.

    Returns:
        A handler, not opened yet.

    Raises:
        ConfigurationError: one of them can't be a handler; the message says which and what was seen.
    """
    if not settings.routes:
        return load_handler(settings, trace_headers)
    handlers: dict[str, OpenHandler] = {}
    for name in settings.handler_names:
        try:
            handlers[name] = load_handler(settings.model_copy(update={"handler": name}), trace_headers)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_places(settings, name)}: {error}") from error
    names = [*(route.handler for route in settings.routes), *([settings.handler] if settings.handler else [])]
    return RoutedHandler(Router([route.match for route in settings.routes]), names, handlers)


def _places(settings: ProcessorSettings, name: str) -> str:
    routes = [f"processor.routes[{number}]" for number, route in enumerate(settings.routes) if route.handler == name]
    return ", ".join([*routes, "processor.handler"] if name == settings.handler else routes)
