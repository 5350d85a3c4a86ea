"""Spans of records, after the messaging conventions of OpenTelemetry 1.44.0 (https://opentelemetry.io/docs/specs/semconv).

The span of a record ("process {topic}", consumer) starts when the record was consumed and ends with its outcome; each
attempt is a span below it. Each export of the sweeper is a span ("send {topic}", producer) in the same trace. No
part of a record's key, value or headers, and no error message, becomes an attribute: any of them may be a secret.

A service holds a `Tracer`, or None while tracing is off (the default, which costs one comparison per record). Only the
API of OpenTelemetry is imported here; its SDK and the exporter are those of ``tracing_export``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wait_registry.errors import ConfigurationError
from wait_registry.logs import take_fields_from
from wait_registry.records.header_reader import SystemHeaders
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import split_lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.runtime import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

HttpHeaders = list[tuple[str, str]]
HttpHeadersSource = Callable[[], HttpHeaders]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
LEFT: Final = "left"
_W3C: Final = TraceContextTextMapPropagator()
# These loggers of the SDK quote what they can't use of a header or an attribute.
_QUOTING: Final = ("opentelemetry.trace.span", "opentelemetry.attributes")
# The IDs of the trace and of the span that is started next, None for random ones.
chosen_ids: ContextVar[tuple[int | None, int | None]] = ContextVar("chosen_ids", default=(None, None))


@dataclass(frozen=True, slots=True)
class RecordConsumed:
    """A record that is about to be processed.

    ``topic``, ``partition`` and ``offset`` are where it was consumed now, ``original`` is its first delivery,
    ``delivery`` counts deliveries from 1. It was consumed at ``consumed_ms``; its wait record was acknowledged at
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
    consumed_ms: int
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
        # The extra otel may be missing.
        from wait_registry.telemetry.tracing_export import collector_provider

        tracer = Tracer(collector_provider(settings, service, chosen_ids.get))
    except ImportError as error:
        raise ConfigurationError(
            "telemetry.traces is on, but OpenTelemetry isn't installed: run pip install 'wait-registry[otel]', "
            f"or set telemetry.traces=false ({error})"
        ) from error
    except Exception as error:  # the SDK reads the variables when it is imported and when it is set up
        seen = f"{type(error).__name__}: {error}".rstrip(".")
        message = f"OpenTelemetry refuses its settings: {seen}. Check the OTEL_* variables"
        raise ConfigurationError(message) from error
    return tracer


def require_tracing(settings: TelemetrySettings, service: str) -> None:
    """Refuse the settings that `start_tracing` would refuse, in a process that has nothing to trace."""
    if (tracer := start_tracing(settings, service)) is not None:
        tracer.stop()


def context_of(headers: Headers) -> Context:
    """Return the trace context that a record came in (W3C); an empty one if its headers name none."""
    system = SystemHeaders(headers)
    return _W3C.extract({name: system.trace(name) or "" for name in _W3C.fields}, Context())


class FirstDelivery(NamedTuple):
    """The coordinates of a record's first delivery to a group, of which any process computes the same IDs.

    A record without a trace starts one. When it expires and is delivered again, another process traces it, and its
    headers are unchanged, so the trace ID is computed from the record.
    """

    topic: str
    partition: int | None
    offset: int | None
    timestamp_ms: int | None
    group: str | None

    def trace_id(self) -> int:
        """Return the ID of the trace that a record without a trace starts (as good as random for samplers)."""
        return int.from_bytes(self._digest("trace")[:16])

    def redelivery_span_id(self, delivery: int) -> int:
        """Return the ID of the sweeper's span of the redelivery that made this delivery (from 2)."""
        return int.from_bytes(self._digest(f"redelivery\n{delivery}")[:8])

    def _digest(self, what: str) -> bytes:
        return sha256("\n".join(("waitreg1", what, *map(str, self))).encode("utf-8", "surrogatepass")).digest()


class Tracer:
    """Makes the spans of a service, in one thread (except `http_headers`); log lines carry the IDs of the current one.

    Args:
        provider: of the SDK, whose IDs `chosen_ids` chooses.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self.tracer = provider.get_tracer("wait_registry", schema_url=SCHEMA_URL)
        for name in _QUOTING:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [logging.NullHandler()], False
        take_fields_from(_current_ids)

    def record_consumed(self, consumed: RecordConsumed) -> RecordTrace:
        """Start the span of a record."""
        parent = context_of(consumed.original.headers)
        first = FirstDelivery(*consumed.original[:4], consumed.group)
        links = [_redelivery(parent, first, consumed.delivery)] if consumed.delivery > 1 else []
        with _chosen(parent, first.trace_id()):
            span = self.tracer.start_span(
                f"process {consumed.topic}",
                parent,
                SpanKind.CONSUMER,
                _consumed_attributes(consumed),
                links,
                consumed.consumed_ms * 1_000_000,
            )
        if consumed.wait_offset is not None:
            where = {"waitreg.wait.partition": consumed.wait_partition, "waitreg.wait.offset": consumed.wait_offset}
            span.add_event("registered", where, consumed.registered_ms * 1_000_000)
        return RecordTrace(self.tracer, span)

    def record_published(self, published: RecordPublished) -> None:
        """Make the span of an export."""
        originals, lineage, _ = split_lineage(published.headers)
        if lineage is None:
            return
        delivery, parent = lineage.delivery or 1, context_of(originals)
        first = FirstDelivery(*lineage[:4], lineage.group)
        attributes = _messaging_attributes("send", published.topic, lineage.wait_id, delivery)
        attributes["waitreg.outcome"] = published.outcome
        by = {"waitreg.group": lineage.group, "waitreg.instance": lineage.instance}
        attributes |= {name: value for name, value in by.items() if value is not None}
        span_id = first.redelivery_span_id(delivery) if published.outcome == Outcome.REDELIVERED else None
        with _chosen(parent, first.trace_id(), span_id):
            span = self.tracer.start_span(
                f"send {published.topic}", parent, SpanKind.PRODUCER, attributes, start_time=published.began_ns
            )
        span.end(published.ended_ns)

    def http_headers(self) -> HttpHeaders:
        """Return the HTTP headers that continue the current trace (W3C Trace Context)."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return list(carrier.items())

    def flush(self) -> None:
        self.provider.force_flush()

    def stop(self) -> None:
        take_fields_from(None)
        self.provider.shutdown()


class RecordTrace:
    """The trace of one record while it is processed.

    From `Tracer.record_consumed` to `leave` it is current in the calling task, so that log lines and the handler's own
    spans belong to it. After `leave`, only `dead_lettered` and `ended` may follow, from anywhere.
    """

    def __init__(self, tracer: trace.Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._context = trace.set_span_in_context(span, Context())
        self._tokens = [contexts.attach(self._context)]
        self._attempt: Span | None = None
        self._attempts = 0
        self._error_type = ""

    def attempt_started(self, number: int) -> None:
        self._attempts = number
        if not self._span.is_recording():
            return  # the record's own context stays current, and carries that nothing is sampled
        self._attempt = attempt = self._tracer.start_span(
            "attempt", self._context, attributes={"waitreg.attempt": number}
        )
        self._tokens.append(contexts.attach(trace.set_span_in_context(attempt, self._context)))

    def attempt_over_limit(self) -> None:
        if self._attempt is not None:
            self._attempt.set_attribute("waitreg.timed_out", True)

    def attempt_ended(self, error: BaseException | None) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if error is not None:
            module, name = type(error).__module__, type(error).__qualname__
            self._error_type = name if module == "builtins" else f"{module}.{name}"
            attempt.set_status(StatusCode.ERROR)
            attempt.set_attribute("error.type", self._error_type)
            attempt.add_event("exception", {"exception.type": self._error_type})
        attempt.end()
        contexts.detach(self._tokens.pop())

    def dead_lettered(self, reason: str) -> None:
        self._span.add_event("dead-lettered", {"waitreg.reason": reason})

    def ended(self, outcome: str) -> None:
        if outcome == Outcome.DEAD_LETTERED:
            self._span.set_status(StatusCode.ERROR)
            if self._error_type:
                self._span.set_attribute("error.type", self._error_type)
        self._span.set_attributes({"waitreg.outcome": outcome, "waitreg.attempts": self._attempts})
        self._span.end()

    def attempt_left(self) -> None:
        """End the running attempt, if there is one, without an outcome; in the task that started it."""
        if self._attempt is not None:
            self._attempt.set_attribute("waitreg.outcome", LEFT)
        self.attempt_ended(None)

    def left(self) -> None:
        """End the trace of a record without an outcome, which stays registered until it expires."""
        self.attempt_left()
        self.ended(LEFT)
        self.leave()

    def leave(self) -> None:
        while self._tokens:
            contexts.detach(self._tokens.pop())


@contextmanager
def _chosen(parent: Context, trace_id: int, span_id: int | None = None) -> Iterator[None]:
    """Give the span that is started meanwhile these IDs; one with a parent keeps the parent's trace."""
    has_parent = trace.get_current_span(parent).get_span_context().is_valid
    token = chosen_ids.set((None if has_parent else trace_id, span_id))
    try:
        yield
    finally:
        chosen_ids.reset(token)


def _current_ids() -> Mapping[str, object]:
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(current.trace_id), "span_id": trace.format_span_id(current.span_id)}


def _redelivery(parent: Context, first: FirstDelivery, delivery: int) -> Link:
    """Return the link to the sweeper's span of this delivery; it leads nowhere if the sweeper doesn't trace."""
    remote = trace.get_current_span(parent).get_span_context()
    trace_id = remote.trace_id if remote.is_valid else first.trace_id()
    flags = remote.trace_flags if remote.is_valid else TraceFlags(TraceFlags.SAMPLED)
    return Link(SpanContext(trace_id, first.redelivery_span_id(delivery), is_remote=True, trace_flags=flags))


def _messaging_attributes(operation: str, topic: str, wait_id: str, delivery: int) -> dict[str, Any]:
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
        "messaging.message.id": wait_id,
        "waitreg.delivery": delivery,
    }


def _consumed_attributes(consumed: RecordConsumed) -> dict[str, Any]:
    original = consumed.original
    attributes = _messaging_attributes("process", consumed.topic, consumed.wait_id, consumed.delivery) | {
        "messaging.destination.partition.id": str(consumed.partition),
        "messaging.kafka.offset": consumed.offset,
        "messaging.consumer.group.name": consumed.group,
        "messaging.client.id": consumed.instance,
    }
    if original.value is None:
        attributes["messaging.kafka.message.tombstone"] = True
    if original[:3] != (consumed.topic, consumed.partition, consumed.offset):
        attributes |= {
            "waitreg.original.topic": original.topic,
            "waitreg.original.partition": original.partition,
            "waitreg.original.offset": original.offset,
        }
    return attributes
