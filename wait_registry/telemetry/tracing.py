"""Tracing hooks: the services hand events to a tracer, and nothing here knows a tracing library.

A service holds a `Tracer`, or None while tracing is off (the default, which costs one comparison per record).
``tracing_spans`` makes OpenTelemetry spans of the events; it is imported only when tracing is on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wait_registry.errors import ConfigurationError
from wait_registry.records.headers import Headers
from wait_registry.records.original import Original
from wait_registry.settings.runtime import TelemetrySettings

HttpHeaders = list[tuple[str, str]]
HttpHeadersSource = Callable[[], HttpHeaders]


@dataclass(frozen=True, slots=True)
class RecordTaken:
    """A record that is about to be processed.

    ``topic``, ``partition`` and ``offset`` are where it was consumed now, ``original`` is its first delivery,
    ``delivery`` counts deliveries from 1. It was consumed at ``taken_ms``; its wait record was acknowledged at
    ``registered_ms`` (ms since the epoch), and ``wait_offset`` is None if it has none, or one that is unknown.
    """

    topic: str
    partition: int
    offset: int
    original: Original
    group: str
    instance: str
    wait_id: str
    delivery: int
    taken_ms: int
    wait_partition: int = 0
    wait_offset: int | None = None
    registered_ms: int = 0


@dataclass(frozen=True, slots=True)
class RecordPublished:
    """An exported record: ``headers`` as in the topic, times in ns since the epoch."""

    topic: str
    headers: Headers
    outcome: str
    began_ns: int
    ended_ns: int


class RecordTrace(Protocol):
    """The trace of one record while it is processed.

    From `Tracer.record_taken` to `leave` it is current in the calling task, so that log lines and the handler's own
    spans belong to it. After `leave`, only `dead_lettered` and `ended` may follow, from anywhere.
    """

    def attempt_started(self, number: int) -> None: ...
    def attempt_over_limit(self) -> None: ...
    def attempt_ended(self, error: BaseException | None) -> None: ...
    def attempt_left(self) -> None:
        """End the running attempt, if there is one, without an outcome; in the task that started it."""

    def dead_lettered(self, reason: str) -> None: ...
    def ended(self, outcome: str) -> None: ...
    def left(self) -> None:
        """End the trace of a record without an outcome, which stays registered until it expires."""

    def leave(self) -> None: ...


class Tracer(Protocol):
    """Receives the events of a service, in one thread (except `http_headers`)."""

    def record_taken(self, taken: RecordTaken) -> RecordTrace: ...
    def record_published(self, published: RecordPublished) -> None: ...
    def http_headers(self) -> HttpHeaders:
        """Return the HTTP headers that continue the current trace (W3C Trace Context)."""

    def flush(self) -> None: ...
    def stop(self) -> None: ...


def start_tracing(settings: TelemetrySettings, service: str) -> Tracer | None:
    """Start tracing if the settings ask for it.

    Args:
        settings: whether to trace, and the receiver.
        service: ``processor`` or ``sweeper``; service.name is ``waitreg-{service}`` by default.

    Returns:
        None if tracing is off.

    Raises:
        ConfigurationError: tracing is on, and its packages are missing or refuse an OTEL_* variable.
    """
    if not settings.traces:
        return None
    try:
        from wait_registry.telemetry.tracing_spans import SpanTracer

        return SpanTracer.to_collector(settings, service)
    except ImportError as error:
        from wait_registry.settings.relations import MISSING_EXTRA

        raise ConfigurationError(f"{MISSING_EXTRA} ({error})") from error
    except Exception as error:  # the SDK reads the variables when it is imported and when it is set up
        seen = f"{type(error).__name__}: {error}".rstrip(".")
        message = f"OpenTelemetry refuses its settings: {seen}. Check the OTEL_* variables"
        raise ConfigurationError(message) from error


def require_tracing(settings: TelemetrySettings, service: str) -> None:
    """Refuse the settings that `start_tracing` would refuse, in a process that has nothing to trace."""
    if (tracer := start_tracing(settings, service)) is not None:
        tracer.stop()
