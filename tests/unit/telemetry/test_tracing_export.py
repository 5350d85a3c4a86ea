"""A collector that fails costs spans: it is said once, and holds nothing up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tests.support.waiting import wait_until
from wait_registry.telemetry.tracing_export import REPEAT_S, LossNotice, WatchedExporter
from wait_registry.telemetry.tracing_ids import ChosenIds
from wait_registry.telemetry.tracing_provider import FLUSH_LIMIT_S, IMPATIENT_S, Tracing

TRYING = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
QUEUING = logging.getLogger("opentelemetry.sdk._shared_internal")


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    before = [(logger, logger.handlers, logger.propagate) for logger in (TRYING, QUEUING)]
    yield
    for logger, handlers, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate


class Collector(SpanExporter):
    """Answers as it is told."""

    def __init__(self, *answers: SpanExportResult | Exception) -> None:
        self.answers = list(answers)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_failing_collector_is_told_once_with_the_reason_and_again_after_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 0.0
    exporter = WatchedExporter(Collector(*[SpanExportResult.FAILURE] * 4), LossNotice(lambda: now_s))
    for _ in range(3):
        TRYING.warning("Connection refused")
        assert exporter.export(()) is SpanExportResult.FAILURE
    [said] = warnings(caplog)
    assert "records are processed as before: Connection refused" in said
    assert "telemetry.traces_endpoint" in said
    now_s = REPEAT_S
    exporter.export(())
    assert len(warnings(caplog)) == 2


def test_an_exporter_that_raises_loses_its_batch_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    exporter = WatchedExporter(Collector(OSError("no route"), SpanExportResult.SUCCESS), LossNotice())
    assert exporter.export(()) is SpanExportResult.FAILURE
    assert exporter.export(()) is SpanExportResult.SUCCESS
    [said] = warnings(caplog)
    assert "OSError: no route" in said


def test_a_silent_collector_is_waited_for_once_and_its_spans_are_sent_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, waits = threading.Event(), list[float | None]()

    class Silent(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            release.wait(60)
            return SpanExportResult.SUCCESS

    sent = WatchedExporter(Silent(), LossNotice())
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(sent))
    tracing = Tracing(provider, ChosenIds(), sent)
    join = threading.Thread.join
    monkeypatch.setattr(threading.Thread, "join", lambda thread, limit_s=None: (waits.append(limit_s), join(thread, 0)))
    try:
        for _ in range(3):
            tracing.tracer.start_span("one").end()
            tracing.flush()
        assert waits == [FLUSH_LIMIT_S, IMPATIENT_S, IMPATIENT_S]
    finally:
        release.set()
    monkeypatch.undo()
    tracing.flush()
    wait_until(lambda: sent.exported == tracing.offered == 3, 60, "the spans")
    tracing.stop()


def test_a_full_queue_drops_spans_says_so_and_an_end_that_hangs_is_left(caplog: pytest.LogCaptureFixture) -> None:
    entered, release = threading.Event(), threading.Event()

    class Hanging(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            entered.set()
            release.wait(60)
            return SpanExportResult.SUCCESS

    sent = WatchedExporter(Hanging(), LossNotice())
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(sent, max_queue_size=4, max_export_batch_size=2))
    tracing = Tracing(provider, ChosenIds(), sent)
    try:
        for _ in range(2):
            tracing.tracer.start_span("one").end()
        assert entered.wait(60)
        for _ in range(10):
            tracing.tracer.start_span("one").end()
        tracing.stop(limit_s=0.05)
        said = warnings(caplog)
        assert len(said) == 2
        assert "spans are lost, records are processed as before: Queue full" in said[0]
        assert said[1] == "12 of 12 spans could not be sent"
    finally:
        release.set()
