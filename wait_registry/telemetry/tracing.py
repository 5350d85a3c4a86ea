"""What a service tells about one record, for whoever draws traces of it; nothing here knows a tracing library.

The services hold a `Tracer` or None. None is the default and costs one test a record. The one that makes OpenTelemetry
spans is in ``tracing_spans``, which is imported when tracing is switched on and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.records.headers import Headers
from wait_registry.records.original import Original
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.settings.telemetry_relations import MISSING_EXTRA

HttpHeaders = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Registered:
    """Where and when (ms since the epoch, this host's clock) the broker acknowledged a wait record."""

    partition: int
    offset: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class RecordTaken:
    """A record that is about to be worked on.

    ``topic``, ``partition`` and ``offset`` are where it was consumed now, ``original`` is its first delivery,
    ``attempt`` counts deliveries from 1, ``taken_ms`` is when it was consumed (ms since the epoch).
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
    registered: Registered | None


@dataclass(frozen=True, slots=True)
class RecordPublished:
    """An expired record that has been published again: ``headers`` as they stand in the topic, times in ns (epoch)."""

    topic: str
    headers: Headers
    outcome: str
    began_ns: int
    ended_ns: int


class RecordTrace(Protocol):
    """The trace of one record while it is worked on.

    From `Tracer.record_taken` to `leave` it is current in the calling task: log lines, and what the handler traces
    itself, belong to it. After `leave` only `dead_lettered` and `ended` may follow, from anywhere.
    """

    def attempt_started(self, number: int) -> None:
        """Begin the attempt of this number, from 1; it is current until it ends."""

    def attempt_over_limit(self) -> None:
        """Note that the attempt is over its limit; `attempt_ended` follows."""

    def attempt_ended(self, error: BaseException | None) -> None:
        """End the attempt; ``error`` says how it failed."""

    def dead_lettered(self, reason: str) -> None:
        """Note that the broker has acknowledged the record's dead letter."""

    def ended(self, outcome: str) -> None:
        """End the trace of a record that has an outcome."""

    def left(self) -> None:
        """End the trace of a record that has none: it stays in the registry, and expires there."""

    def leave(self) -> None:
        """Let the calling task go on with something else."""


class Tracer(Protocol):
    """Makes traces; used by one thread, apart from `http_headers`."""

    def record_taken(self, taken: RecordTaken) -> RecordTrace:
        """Begin the trace of a record, in the trace that its headers name if they do."""

    def record_published(self, published: RecordPublished) -> None:
        """Tell of an expired record that has been dead-lettered or delivered again."""

    def http_headers(self) -> HttpHeaders:
        """Return the HTTP headers that carry the current trace on (W3C Trace Context)."""

    def flush(self) -> None:
        """Send what is waiting and go on tracing; a receiver that is silent is waited for once, then hardly at all."""

    def stop(self) -> None:
        """Send what is waiting, within a few seconds, and say what could not be sent."""


HttpHeadersSource = Callable[[], HttpHeaders]


def start_tracing(settings: TelemetrySettings, service: str) -> Tracer | None:
    """Begin to trace if the settings say so.

    Args:
        settings: whether, and where to.
        service: ``processor`` or ``sweeper``; the default of service.name is made of it.

    Returns:
        None when tracing is off.

    Raises:
        ConfigurationError: it is on, and its packages aren't installed or refuse an OTEL_* variable; mend it.
    """
    if not settings.traces:
        return None
    try:
        from wait_registry.telemetry.tracing_provider import Tracing
        from wait_registry.telemetry.tracing_spans import SpanTracer
    except ImportError as error:
        raise ConfigurationError(f"{MISSING_EXTRA} ({error})") from error
    except Exception as error:
        raise _refused(error) from error
    try:
        return SpanTracer(Tracing.to_collector(settings, service))
    except WaitRegistryError:
        raise
    except Exception as error:
        raise _refused(error) from error


def require_tracing(settings: TelemetrySettings, service: str) -> None:
    """Refuse what `start_tracing` would, in a process that has nothing to trace; arguments and errors are the same."""
    tracer = start_tracing(settings, service)
    if tracer is not None:
        tracer.stop()


def _refused(error: Exception) -> ConfigurationError:
    """Whatever the SDK raises while it is put together, or even imported, comes of the variables that it reads."""
    seen = f"{type(error).__name__}: {error}".rstrip(".")
    return ConfigurationError(f"traces: OpenTelemetry refuses its settings: {seen}. See the OTEL_* variables")
