"""A collector that fails costs spans: it is said once, and holds nothing up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tests.support.waiting import wait_until
from wait_registry.telemetry.tracing_export import FLUSH_LIMIT_S, REPEAT_S, SLOW_FLUSH_LIMIT_S, SpanSender
from wait_registry.telemetry.tracing_spans import SpanTracer

TRYING = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
QUEUING = logging.getLogger("opentelemetry.sdk._shared_internal")


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    before = [(logger, logger.handlers, logger.propagate) for logger in (TRYING, QUEUING)]
    yield
    for logger, handlers, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate


class Collector(SpanExporter):
    """Gives the answers in their order."""

    def __init__(self, *answers: SpanExportResult | Exception) -> None:
        self.answers = list(answers)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def send(tracer: SpanTracer, spans: int = 1) -> None:
    for _ in range(spans):
        tracer.tracer.start_span("one").end()
        tracer.flush()


def test_a_failing_collector_is_reported_once_and_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    sender = SpanSender(Collector(*[SpanExportResult.FAILURE] * 4), monotonic=lambda: now_s)
    tracer = SpanTracer(sender)
    TRYING.warning("Connection refused")
    send(tracer, 3)
    [report] = warnings(caplog)
    assert "records are processed as before: Connection refused" in report
    assert "telemetry.traces_endpoint" in report
    now_s = REPEAT_S
    send(tracer)
    assert len(warnings(caplog)) == 2


def test_an_exporter_that_raises_loses_its_batch_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    sender = SpanSender(Collector(OSError("no route"), SpanExportResult.SUCCESS))
    send(SpanTracer(sender), 2)
    [report] = warnings(caplog)
    assert "OSError: no route" in report
    assert sender.exported == 1


def test_a_silent_collector_is_waited_for_once_and_gets_its_spans_later(monkeypatch: pytest.MonkeyPatch) -> None:
    release, waits = threading.Event(), list[float | None]()

    class Silent(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            release.wait(60)
            return SpanExportResult.SUCCESS

    sender = SpanSender(Silent())
    tracer = SpanTracer(sender)
    join = threading.Thread.join
    monkeypatch.setattr(threading.Thread, "join", lambda thread, limit_s=None: (waits.append(limit_s), join(thread, 0)))
    try:
        send(tracer, 3)
        assert waits == [FLUSH_LIMIT_S, SLOW_FLUSH_LIMIT_S, SLOW_FLUSH_LIMIT_S]
    finally:
        release.set()
    monkeypatch.undo()
    sender.force_flush()
    wait_until(lambda: sender.exported == sender.offered == 3, 60, "the spans")
    sender.shutdown()


def test_a_full_queue_drops_spans_and_a_hanging_end_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    entered, release = threading.Event(), threading.Event()

    class Hanging(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            entered.set()
            release.wait(60)
            return SpanExportResult.SUCCESS

    sender = SpanSender(Hanging(), stop_limit_s=0.05, max_queue_size=4, max_export_batch_size=2)
    tracer = SpanTracer(sender)
    try:
        for _ in range(2):
            tracer.tracer.start_span("one").end()
        assert entered.wait(60)
        for _ in range(10):
            tracer.tracer.start_span("one").end()
        tracer.stop()
        reports = warnings(caplog)
        assert len(reports) == 2
        assert "spans are lost, records are processed as before: Queue full" in reports[0]
        assert reports[1] == "12 of 12 spans could not be sent"
    finally:
        release.set()
