"""The processor as a process: its spans reach the collector before it ends, and one that isn't there costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.collector import Collector
from tests.support.processes import Services
from tests.support.topics import Topics

HANDLER = """
import logging
from opentelemetry import trace
tracer, log = trace.get_tracer("shop"), logging.getLogger("shop")

async def handle(record):
    with tracer.start_as_current_span("charge"):
        log.info("charged")
"""
RECORDS = 50


@pytest.fixture
def collector() -> Iterator[Collector]:
    own = Collector()
    yield own
    own.close()


def test_all_spans_are_sent_and_the_log_names_them(
    prepared: SettingsFactory, topics: Topics, services: Services, tmp_path: Path, collector: Collector
) -> None:
    (tmp_path / "shop.py").write_text(HANDLER)
    settings = prepared({"processor.handler": "shop:handle", "telemetry.traces": True})
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(RECORDS)])
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.base, "OTEL_SERVICE_NAME": "shop-orders"}
    service = services.start("processor", settings, "--once", environment=variables)
    assert service.wait(120) == 0, service.log.read_text("utf-8")

    spans = {span.span_id: span for span in collector.received}
    assert {span.service for span in spans.values()} == {"shop-orders"}, "the standard variables count"
    charges = [span for span in spans.values() if span.name == "charge"]
    assert len(charges) == RECORDS
    for charge in charges:
        attempt = spans[charge.parent_id]
        assert attempt.name == "attempt"
        assert spans[attempt.parent_id].name == f"process {settings.processor.topics[0]}"
    logged = [line for line in service.log_lines() if line.get("logger") == "shop"]
    assert {(line["trace_id"], line["span_id"]) for line in logged} == {
        (charge.trace_id, charge.span_id) for charge in charges
    }


def test_without_a_collector_every_record_is_processed(
    prepared: SettingsFactory, topics: Topics, services: Services, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text("async def handle(record):\n    return None\n")
    settings = prepared(
        {
            "processor.handler": "shop:handle",
            "telemetry.traces": True,
            "telemetry.traces_endpoint": "http://127.0.0.1:1/v1/traces",
        }
    )
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(3000)])
    # The SDK gives a batch up after this many seconds of retries; ten by default.
    service = services.start("processor", settings, "--once", environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    assert service.wait(120) == 0, service.log.read_text("utf-8")
    assert sum(record.value is None for record in topics.read(settings.wait.topic)) == 3000
    lines = [str(line["message"]) for line in service.log_lines() if "opentelemetry" in str(line.get("logger"))]
    assert 0 < len(lines) <= 3, lines
    assert "Connection refused" in lines[0]
    assert "Traceback" not in service.log.read_text("utf-8")
