"""Spans of records, after the messaging conventions of OpenTelemetry 1.44.0 (https://opentelemetry.io/docs/specs/semconv).

A record's span ("process {topic}", consumer) begins when it was consumed and ends with its outcome; each attempt at it
is a span below. What the sweeper publishes again is a span ("send {topic}", producer) in the same trace. Nothing of a
record's key, value or headers, and nothing that an error says, becomes an attribute: any of it may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TraceFlags

from wait_registry.logs import take_fields_from
from wait_registry.records.lineage import split_lineage
from wait_registry.records.tombstone import Outcome
from wait_registry.telemetry.tracing import HttpHeaders, RecordPublished, RecordTaken
from wait_registry.telemetry.tracing_context import context_of, http_headers, keep_content_out_of_logs
from wait_registry.telemetry.tracing_ids import FirstDelivery
from wait_registry.telemetry.tracing_provider import Tracing

NS_PER_MS: Final = 1_000_000
LEFT: Final = "left"
Attributes = dict[str, str | int | bool]


class SpanTracer:
    """Makes spans; log lines that are written while one is current carry its ids."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        keep_content_out_of_logs()
        take_fields_from(current_ids)

    def record_taken(self, taken: RecordTaken) -> RecordSpan:
        """Begin the span of a record and make it current."""
        parent, first = context_of(taken.original.headers), FirstDelivery.of(taken.original, taken.group)
        links = [self._redelivery(parent, first, taken.delivery)] if taken.delivery > 1 else []
        span = self._begin(
            f"process {taken.topic}",
            parent,
            SpanKind.CONSUMER,
            _taken_attributes(taken),
            first,
            links=links,
            start_ns=taken.taken_ms * NS_PER_MS,
        )
        if taken.registered is not None:
            registered = taken.registered
            where: Attributes = {
                "waitreg.wait.partition": registered.partition,
                "waitreg.wait.offset": registered.offset,
            }
            span.add_event("registered", where, registered.at_ms * NS_PER_MS)
        return RecordSpan(self._tracing.tracer, span)

    def record_published(self, published: RecordPublished) -> None:
        """Make the span of an expired record that was published again."""
        originals, lineage, _ = split_lineage(published.headers)
        if lineage is None:
            return
        first, delivery = FirstDelivery.of_lineage(lineage), lineage.delivery or 1
        again = published.outcome == Outcome.REDELIVERED
        span = self._begin(
            f"send {published.topic}",
            context_of(originals),
            SpanKind.PRODUCER,
            _published_attributes(published, lineage.wait_id, lineage.group, lineage.instance, delivery),
            first,
            span_id=first.redelivery_span_id(delivery) if again else None,
            start_ns=published.began_ns,
        )
        span.end(published.ended_ns)

    def http_headers(self) -> HttpHeaders:
        """Return the current trace as HTTP headers."""
        return http_headers()

    def flush(self) -> None:
        """Send what is waiting, and go on."""
        self._tracing.flush()

    def stop(self) -> None:
        """Send what is waiting."""
        take_fields_from(None)
        self._tracing.stop()

    def _begin(
        self,
        name: str,
        parent: Context,
        kind: SpanKind,
        attributes: Attributes,
        first: FirstDelivery,
        span_id: int | None = None,
        links: list[Link] | None = None,
        start_ns: int | None = None,
    ) -> Span:
        has_parent = trace.get_current_span(parent).get_span_context().is_valid
        self._tracing.ids.choose(None if has_parent else first.trace_id(), span_id)
        try:
            return self._tracing.tracer.start_span(
                name, parent, kind, attributes, links, start_ns, record_exception=False, set_status_on_exception=False
            )
        finally:
            self._tracing.ids.choose(None, None)

    def _redelivery(self, parent: Context, first: FirstDelivery, delivery: int) -> Link:
        """Return the link to the sweeper's span of this delivery; it leads nowhere if the sweeper doesn't trace."""
        remote = trace.get_current_span(parent).get_span_context()
        trace_id = remote.trace_id if remote.is_valid else first.trace_id()
        flags = remote.trace_flags if remote.is_valid else TraceFlags(TraceFlags.SAMPLED)
        return Link(SpanContext(trace_id, first.redelivery_span_id(delivery), is_remote=True, trace_flags=flags))


class RecordSpan:
    """The span of one record, and of the attempt that runs."""

    def __init__(self, tracer: trace.Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._recording = span.is_recording()
        self._context = trace.set_span_in_context(span, Context())
        self._tokens = [contexts.attach(self._context)]
        self._attempt: Span | None = None
        self._tries = 0
        self._error_type = ""

    def attempt_started(self, number: int) -> None:
        """Begin an attempt."""
        self._tries = number
        if not self._recording:
            return  # nor would it be; the record's own context is current, and says so
        self._attempt = attempt = self._tracer.start_span(
            "attempt", self._context, attributes={"waitreg.attempt": number}
        )
        self._tokens.append(contexts.attach(trace.set_span_in_context(attempt, self._context)))

    def attempt_over_limit(self) -> None:
        """Mark the attempt."""
        if self._attempt is not None:
            self._attempt.set_attribute("waitreg.timed_out", True)

    def attempt_ended(self, error: BaseException | None) -> None:
        """End the attempt; of an error its class is kept, and nothing that it says."""
        attempt = self._attempt
        if attempt is None:
            return
        self._attempt = None
        if error is not None:
            self._error_type = _failed(attempt, error)
        attempt.end()
        contexts.detach(self._tokens.pop())

    def dead_lettered(self, reason: str) -> None:
        """Add the event."""
        self._span.add_event("dead-lettered", {"waitreg.reason": reason})

    def ended(self, outcome: str) -> None:
        """End the record's span."""
        if outcome == Outcome.DEAD_LETTERED:
            self._span.set_status(StatusCode.ERROR)
            if self._error_type:
                self._span.set_attribute("error.type", self._error_type)
        self._end(outcome)

    def left(self) -> None:
        """End the record's span, and the attempt that was cut short."""
        if self._attempt is not None:
            self._attempt.set_attribute("waitreg.outcome", LEFT)
        self.attempt_ended(None)
        self._end(LEFT)
        self.leave()

    def leave(self) -> None:
        """Make current what was before."""
        while self._tokens:
            contexts.detach(self._tokens.pop())

    def _end(self, outcome: str) -> None:
        self._span.set_attributes({"waitreg.outcome": outcome, "waitreg.attempts": self._tries})
        self._span.end()


def current_ids() -> Mapping[str, object]:
    """Return the ids of the current span as log fields; none when there is none."""
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(current.trace_id), "span_id": trace.format_span_id(current.span_id)}


def _failed(span: Span, error: BaseException) -> str:
    error_class = type(error)
    module, name = error_class.__module__, error_class.__qualname__
    error_type = name if module == "builtins" else f"{module}.{name}"
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", error_type)
    span.add_event("exception", {"exception.type": error_type})
    return error_type


def _taken_attributes(taken: RecordTaken) -> Attributes:
    original = taken.original
    attributes: Attributes = {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": taken.topic,
        "messaging.destination.partition.id": str(taken.partition),
        "messaging.kafka.offset": taken.offset,
        "messaging.consumer.group.name": taken.group,
        "messaging.client.id": taken.instance,
        "messaging.message.id": taken.wait_id,
        "waitreg.delivery": taken.delivery,
    }
    if original.value is None:
        attributes["messaging.kafka.message.tombstone"] = True
    if (original.topic, original.partition, original.offset) != (taken.topic, taken.partition, taken.offset):
        attributes |= {
            "waitreg.original.topic": original.topic,
            "waitreg.original.partition": original.partition,
            "waitreg.original.offset": original.offset,
        }
    return attributes


def _published_attributes(
    published: RecordPublished, wait_id: str, group: str | None, instance: str | None, delivery: int
) -> Attributes:
    attributes: Attributes = {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": published.topic,
        "messaging.message.id": wait_id,
        "waitreg.outcome": published.outcome,
        "waitreg.delivery": delivery,
    }
    if group is not None:
        attributes["waitreg.group"] = group
    if instance is not None:
        attributes["waitreg.instance"] = instance
    return attributes
