"""Spans in memory: a tracer whose spans a test reads as they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wait_registry.telemetry.tracing import Tracer, chosen_ids
from wait_registry.telemetry.tracing_export import provider_of


def tracer_of(processor: SpanProcessor) -> Tracer:
    """Return a tracer whose spans this processor receives."""
    return Tracer(provider_of(processor, chosen_ids.get))


class Traced:
    """A tracer, and the spans that have ended.

    ``tracer.tracer`` is what a user's handler would get from OpenTelemetry's ``get_tracer``.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = tracer_of(SimpleSpanProcessor(self._exporter))

    def spans(self, beginning: str = "") -> list[ReadableSpan]:
        """Return the spans whose name begins so, in the order in which they ended."""
        return [span for span in self._exporter.get_finished_spans() if span.name.startswith(beginning)]

    def children(self, parent: ReadableSpan) -> list[ReadableSpan]:
        """Return the spans below a span, in the order in which they began."""
        below = [span for span in self.spans() if span.parent is not None and span.parent.span_id == id_of(parent)]
        return sorted(below, key=lambda span: span.start_time or 0)

    def close(self) -> None:
        """Stop it, so that log lines carry no ids any more."""
        self.tracer.stop()


@pytest.fixture
def traced() -> Iterator[Traced]:
    """Spans of one test."""
    own = Traced()
    yield own
    own.close()


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def events(span: ReadableSpan) -> dict[str, Mapping[str, Any]]:
    """Return the events of a span by name, with their attributes."""
    return {event.name: event.attributes or {} for event in span.events}


def traceparent(trace_id: int, span_id: int, flags: int = 1) -> tuple[str, bytes]:
    """Return the header that names a parent (W3C Trace Context, section 3.2)."""
    return "traceparent", f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}".encode()
