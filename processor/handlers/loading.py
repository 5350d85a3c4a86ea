"""From the setting ``processor.handler`` to a handler: an import, or an address."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from processor.handlers.decoding import Decoder
from processor.handlers.open_handler import OpenHandler
from processor.handlers.payload import payload_of
from processor.handlers.python import AsynchronousHandler, ContextualHandler, PlainFunctionHandler
from processor.handlers.typed import TypedAsynchronousHandler, decoding
from processor.handlers.user_code import is_asynchronous, place_of, require_no_generator
from wait_registry.errors import ConfigurationError
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.telemetry.tracing import HttpHeadersSource

URL_SCHEMES = ("http://", "https://")
GRPC_SCHEMES = ("grpc://", "grpcs://")
# Packages of this project, which would be imported instead of a user's module.
OWN_PACKAGES = ("processor", "sink", "sweeper", "wait_registry", "waitreg")


def load_handler(settings: ProcessorSettings, trace_headers: HttpHeadersSource | None = None) -> OpenHandler:
    """Find and check the handler.

    Args:
        settings: ``handler`` names what is called; ``most_in_flight`` bounds threads and connections, and
            ``awaits_threads`` says whether a call in a thread is waited for.
        trace_headers: for the HTTP and the gRPC handler.

    Returns:
        The handler, not opened yet.

    Raises:
        ConfigurationError: it can't be imported, called or be a handler; the message says what was seen.
    """
    name = settings.handler
    if name.startswith(URL_SCHEMES):
        # Not for others: the HTTP client takes 10 MB and a tenth of a second.
        from processor.handlers.http import HttpHandler

        return HttpHandler(name, settings.http, settings.most_in_flight, trace_headers=trace_headers)
    if name.startswith(GRPC_SCHEMES):
        return _grpc(settings, trace_headers)
    return handler_from(name, _find(name), settings)


def handler_from(name: str, found: Any, settings: ProcessorSettings) -> OpenHandler:
    """Check what the settings name, and make a handler of it.

    Args:
        name: how the settings name it.
        found: a function, or a class whose objects are entered before the first record.
        settings: ``most_in_flight`` bounds threads, ``schema_registry`` has the schemas of decoded values.

    Raises:
        ConfigurationError: it can't be a handler; the message says what was seen.
    """
    if inspect.isclass(found):
        return _contextual(name, found, settings)
    if not callable(found):
        raise ConfigurationError(
            f"handler {name!r} is a {type(found).__name__}; expected an async def, a function or a class"
        )
    return _handler_of(settings, name, found)


def _handler_of(settings: ProcessorSettings, name: str, function: Callable[..., Any]) -> OpenHandler:
    require_no_generator(name, function)
    payload = payload_of(name, function)
    if payload is not None:
        decoder = Decoder(name, payload, settings.schema_registry)
        if is_asynchronous(function):
            return TypedAsynchronousHandler(function, decoder, payload.with_record)
        function = decoding(function, decoder, payload.with_record)
    elif is_asynchronous(function):
        return AsynchronousHandler(function)
    return PlainFunctionHandler(function, settings.most_in_flight, settings.awaits_threads)


def _grpc(settings: ProcessorSettings, trace_headers: HttpHeadersSource | None) -> OpenHandler:
    # Its own log lines aren't JSON, and each call that fails reports the same.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from processor.handlers.grpc import GrpcHandler
    except ImportError as error:
        raise ConfigurationError(
            "processor.handler is a gRPC address, but grpcio isn't installed: run pip install 'wait-registry[grpc]' "
            f"({error})"
        ) from error
    limits = (settings.handler_timeout_s, settings.most_in_flight)
    return GrpcHandler(settings.handler, settings.grpc, *limits, trace_headers)


def require_cancellable(handler: OpenHandler, settings: ProcessorSettings) -> None:
    """Refuse to cancel blocked calls of an open handler whose calls continue in their threads.

    Raises:
        ConfigurationError: ``cancel_blocked`` is on.
    """
    if settings.cancel_blocked and handler.in_threads:
        raise ConfigurationError(
            f"processor.cancel_blocked is on, but the calls of {settings.handler!r} run in threads, which can't be "
            "cancelled. Make the handler an async def, or set processor.cancel_blocked=false"
        )


def _find(name: str) -> Any:
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise ConfigurationError(
            f"processor.handler is {name!r}; expected 'module:name' (as in 'shop.orders:handle'), an http(s) URL or "
            "grpc(s)://host:port"
        )
    package = module_name.partition(".")[0]
    if package in OWN_PACKAGES:
        raise ConfigurationError(
            f"handler {name!r}: {package!r} is the name of a package of wait-registry. "
            f"Fix: rename your module, for instance to 'my_{module_name}'"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"handler {name!r}: importing {module_name!r} failed: {type(error).__name__}: {error}{place_of(error)}. "
            "It is looked up in the current directory and on PYTHONPATH."
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(f"handler {name!r}: {module_name!r} has no {path!r}{_hint(found)}")
        found = getattr(found, part)
    return found


def _hint(place: Any) -> str:
    candidates = [name for name, value in vars(place).items() if callable(value) and not name.startswith("_")]
    return f"; it has: {', '.join(sorted(candidates)[:10])}" if candidates else ""


def _contextual(name: str, found: type[Any], settings: ProcessorSettings) -> OpenHandler:
    missing = [method for method in ("__aenter__", "__aexit__", "handle") if not hasattr(found, method)]
    if missing:
        raise ConfigurationError(
            f"handler {name!r} is a class without {', '.join(missing)}; expected an async context manager with "
            "a method handle(record)"
        )
    try:
        instance = found()
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"handler {name!r}: the class can't be made without arguments: {type(error).__name__}: {error}"
            f"{place_of(error)}"
        ) from error
    require_no_generator(f"{name}.handle", instance.handle)
    payload_of(f"{name}.handle", instance.handle)
    return ContextualHandler(name, instance, partial(_handler_of, settings))
