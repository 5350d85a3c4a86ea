"""A tracer or collector that fails or hangs costs spans, a few log lines and no time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from processor.service.traces import Traces
from tests.support.traces import Traced, attributes
from tests.support.waiting import wait_until
from tests.unit.processor.parts import taken
from wait_registry.telemetry import tracing_export
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace
from wait_registry.telemetry.tracing_export import SpanSender, limit_log_lines
from wait_registry.telemetry.tracing_spans import SpanTracer


class Collector(SpanExporter):
    """Answers once ``release`` is set; ``failures`` are raised first."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.release = threading.Event()
        self.exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.failures:
            raise self.failures.pop(0)
        self.release.wait(60)
        self.exported += len(spans)
        return SpanExportResult.SUCCESS


def send(tracer: SpanTracer, spans: int = 1) -> None:
    for _ in range(spans):
        tracer.tracer.start_span("one").end()
        tracer.flush()


def test_each_kind_of_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    limit_log_lines()
    limit_log_lines()
    sdk = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    for pause_s in (0.9, 1.8):
        sdk.warning("Connection refused, retrying in %ss", pause_s)
    sdk.error("Failed to export")
    assert [record.getMessage() for record in caplog.records] == [
        "Connection refused, retrying in 0.9s",
        "Failed to export",
    ]


def test_an_exporter_that_raises_loses_its_batch_and_nothing_else() -> None:
    collector = Collector(OSError("no route"))
    collector.release.set()
    send(SpanTracer(SpanSender(collector)), 2)
    assert collector.exported == 1


def test_a_silent_collector_is_waited_for_once_and_gets_its_spans_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_export, "FLUSH_LIMIT_S", 0.05)
    collector = Collector()
    sender = SpanSender(collector)
    send(SpanTracer(sender), 3)
    assert collector.exported == 0
    collector.release.set()
    wait_until(sender.force_flush, 60, "the first flush")
    sender.force_flush()
    assert collector.exported == 3
    sender.shutdown()


def test_a_full_queue_drops_spans_and_a_hanging_end_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_export, "STOP_LIMIT_S", 0.05)
    collector = Collector()
    tracer = SpanTracer(SpanSender(collector, max_queue_size=4, max_export_batch_size=2))
    try:
        for _ in range(12):
            tracer.tracer.start_span("one").end()
        tracer.stop()
        assert collector.exported == 0
    finally:
        collector.release.set()
    wait_until(lambda: 0 < collector.exported <= 6, 60, "the spans that were kept")


def test_a_failing_tracer_costs_the_trace_only(
    traced: Traced, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(event: RecordTaken) -> RecordTrace:
        raise RuntimeError(f"can't trace {event.original.value!r}")

    monkeypatch.setattr(traced.tracer, "record_taken", fail)
    traces = Traces(traced.tracer, "shop", "host-1")
    for offset in range(3):
        one = taken(offset)
        assert traces.begin(one) is None
        assert one.trace is None
    [said] = [record.getMessage() for record in caplog.records]
    assert said.endswith("the tracer fails (RuntimeError)")


def test_an_acknowledgment_without_an_offset_counts(traced: Traced) -> None:
    one = taken(7)
    # The client has no offset of a record that the broker had already: it answers so to a repeated request.
    one.wait_partition, one.wait_offset = 3, None
    trace = Traces(traced.tracer, "shop", "host-1").begin(one)
    assert trace is not None
    trace.leave()
    trace.left()
    assert one.registered_at == (None, None), "a place is named whole or not at all"
    [span] = traced.spans()
    assert "waitreg.wait.offset" not in attributes(span)
