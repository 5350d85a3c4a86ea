"""Traces: off, they load nothing; on, they are sent without holding up anything, and handlers carry them on."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from processor.calls.traces import Traces
from processor.handlers.grpc import GrpcHandler
from processor.handlers.http import HttpHandler
from processor.handlers.open_handler import OpenHandler
from tests.support.grpc_service import serving
from tests.support.http_service import Answer, HttpService
from tests.support.traces import Traced, attributes, id_of, traceparent, tracer_of
from tests.support.waiting import wait_until
from tests.unit.processor.parts import delivery
from wait_registry.handler import Record
from wait_registry.records.original import Original
from wait_registry.settings.grpc import GrpcHandlerSettings
from wait_registry.settings.http import HttpHandlerSettings
from wait_registry.telemetry import tracing_export
from wait_registry.telemetry.tracing import RecordConsumed, RecordTrace, Tracer
from wait_registry.telemetry.tracing_export import SpanSender, limit_log_lines


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


def send(tracer: Tracer, spans: int = 1) -> None:
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
    send(tracer_of(SpanSender(collector)), 2)
    assert collector.exported == 1


def test_a_silent_collector_is_waited_for_once_and_gets_its_spans_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_export, "FLUSH_LIMIT_S", 0.05)
    collector = Collector()
    sender = SpanSender(collector)
    send(tracer_of(sender), 3)
    assert collector.exported == 0
    collector.release.set()
    wait_until(sender.force_flush, 60, "the first flush")
    sender.force_flush()
    assert collector.exported == 3
    sender.shutdown()


def test_a_full_queue_drops_spans_and_a_hanging_end_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_export, "STOP_LIMIT_S", 0.05)
    collector = Collector()
    tracer = tracer_of(SpanSender(collector, max_queue_size=4, max_export_batch_size=2))
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
    errors = iter([RuntimeError, RuntimeError, OSError, RuntimeError])

    def fail(event: RecordConsumed) -> RecordTrace:
        raise next(errors)(f"can't trace {event.original.value!r}")

    monkeypatch.setattr(traced.tracer, "record_consumed", fail)
    traces = Traces(traced.tracer, "shop", "host-1")
    for offset in range(4):
        one = delivery(offset)
        assert traces.begin(one) is None
        assert one.trace is None
    said = [record.getMessage().rpartition("the tracer fails ")[2] for record in caplog.records]
    assert said == ["(RuntimeError)", "(OSError)"]


def test_an_acknowledgment_without_an_offset_counts(traced: Traced) -> None:
    one = delivery(7)
    # The client has no offset of a record that the broker had already: it answers so to a repeated request.
    one.wait_partition, one.wait_offset = 3, None
    trace = Traces(traced.tracer, "shop", "host-1").begin(one)
    assert trace is not None
    trace.leave()
    trace.left()
    assert one.registered_at == (None, None), "a place is named whole or not at all"
    [span] = traced.spans()
    assert "waitreg.wait.offset" not in attributes(span)


TRACE = 0x0AF7651916CD43DD8448EB211C80319C
HEADERS = (traceparent(TRACE, 1), ("tracestate", b"vendor=1"), ("tenant", b"acme"))
RECORD = Record("orders", 3, 42, 2, b"key", b"body", HEADERS, 1, "id", "shop", datetime(2030, 1, 1, tzinfo=UTC))
CONSUMED = RecordConsumed(
    "orders", 3, 42, Original("orders", 3, 42, 2, "create", b"key", b"body", HEADERS), "shop", "host", "id", 1, 2
)


async def attempt_with(traced: Traced, handler: OpenHandler) -> None:
    """Call a handler as a worker does."""
    await handler.open()
    try:
        record = traced.tracer.record_consumed(CONSUMED)
        record.attempt_started(1)
        await handler.call(RECORD)
        record.attempt_ended(None)
        record.leave()
    finally:
        await handler.close()


def test_the_http_request_is_a_child_of_the_attempt(traced: Traced) -> None:
    async def call(url: str) -> None:
        settings = HttpHandlerSettings(forward_headers=("traceparent", "tracestate", "tenant"))
        await attempt_with(traced, HttpHandler(url, settings, 1, trace_headers=traced.tracer.http_headers))

    with HttpService(lambda _: Answer()) as service:
        asyncio.run(asyncio.wait_for(call(service.address), 60))
    (received,) = service.calls
    [attempt] = traced.spans("attempt")
    sent = {name.lower(): value for name, value in received.headers.items()}
    assert (sent["tenant"], sent["tracestate"]) == ("acme", "vendor=1")
    assert sent["traceparent"] == f"00-{TRACE:032x}-{id_of(attempt):016x}-01"


async def test_the_grpc_call_is_a_child_of_the_attempt(traced: Traced) -> None:
    async with serving() as service:
        settings = GrpcHandlerSettings()
        await attempt_with(traced, GrpcHandler(service.address, settings, 60.0, 1, traced.tracer.http_headers))
    [attempt], [metadata] = traced.spans("attempt"), service.metadata
    assert metadata["tracestate"] == "vendor=1"
    assert metadata["traceparent"] == f"00-{TRACE:032x}-{id_of(attempt):016x}-01"


# In processes of their own, since this one has loaded everything.
HEAD = """
import sys
from wait_registry.errors import ConfigurationError
from wait_registry.settings.relations import relation_problems
from wait_registry.settings.tree import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import start_tracing

def start(**settings):
    try:
        return start_tracing(TelemetrySettings(**settings), "processor")
    except ConfigurationError as error:
        print(error)
"""
LOADED = """
import importlib, json, pkgutil
import processor, sweeper
for package in (processor, sweeper):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert start() is None
print(json.dumps(sorted(sys.modules)))
"""
WITHOUT_THE_EXTRA = """
sys.modules["opentelemetry.sdk"] = None
start(traces=True)
"""
WITH_ANOTHER_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
theirs = TracerProvider()
trace.set_tracer_provider(theirs)
tracer = start(traces=True)
assert trace.get_tracer_provider() is theirs
print(tracer.provider.resource.attributes["service.name"])
tracer.stop()
"""


def run(script: str, **variables: str) -> str:
    command, environment = [sys.executable, "-c", HEAD + script], {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == ""
    return done.stdout


def test_of_the_tracing_library_only_the_api_is_loaded_while_tracing_is_off() -> None:
    loaded = json.loads(run(LOADED))
    assert "processor.calls.traces" in loaded
    assert [name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))] == []


def test_without_its_packages_the_start_names_the_extra() -> None:
    assert "pip install 'wait-registry[otel]'" in run(WITHOUT_THE_EXTRA)


def test_a_provider_that_the_process_already_has_is_kept() -> None:
    assert run(WITH_ANOTHER_PROVIDER, OTEL_SERVICE_NAME="shop") == "shop\n"


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000", "max_export_batch_size"),
        # The SDK reads it while it is imported.
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "abc", "must be a non-negative integer but got abc"),
    ],
)
def test_a_variable_that_the_sdk_refuses_is_a_configuration_error(variable: str, value: str, reason: str) -> None:
    message = run("start(traces=True)", **{variable: value})
    assert message.startswith("OpenTelemetry refuses its settings: ")
    assert reason in message
