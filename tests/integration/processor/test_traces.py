"""A record's trace goes through the processor, attempt by attempt, into what the handler calls, and to a collector."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from tests.integration.processor.scenario import ScenarioFactory, accepts, numbers
from tests.support.collector import Collector
from tests.support.kafka_io import Outgoing
from tests.support.processes import Services
from tests.support.traces import Traced, attributes, events, id_of, trace_of, traceparent
from wait_registry.handler import Discard, HandlerResult, Record, TransientError
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.original import Original
from wait_registry.telemetry.tracing import FirstDelivery

VALUES = (b"done", b"discard", b"fail", b"flaky", b"slow")
TRACES = {value: 0xABC0 + number for number, value in enumerate(VALUES)}
PARENT = 0xB7AD6B7169203331
SECRET = b"card no. 4711"  # no random ID contains it


def published(value: bytes) -> Outgoing:
    return Outgoing(value, b"card-" + SECRET, (("card", SECRET), traceparent(TRACES[value], PARENT)))


def handler_of(traced: Traced) -> Callable[[Record], object]:
    """Return a handler that does what a record says, and traces that as a user's code does."""
    tried: set[str] = set()

    async def by_value(record: Record) -> HandlerResult:
        with traced.tracer.tracer.start_as_current_span(f"call {record.value!r}"):
            match record.value:
                case b"discard":
                    return Discard("nothing to do for card no. 4711")
                case b"fail":
                    raise ValueError("no such card: card no. 4711")
                case b"flaky" if record.wait_id not in tried:
                    tried.add(record.wait_id)
                    raise TransientError("busy")
                case b"slow":
                    await asyncio.sleep(60)
        return None

    return by_value


def test_records_and_their_attempts_are_spans_of_one_trace(processor_scenario: ScenarioFactory, traced: Traced) -> None:
    at = processor_scenario(handler_of(traced), 1, handler_timeout_s=0.5, max_attempts=2)
    at.produce([published(value) for value in VALUES])
    at.run_once(traced.tracer)

    processed = {trace_of(span): span for span in traced.spans("process")}
    spans = {value: processed[TRACES[value]] for value in VALUES}
    assert len(traced.spans("process")) == len(VALUES)
    found = at.by_offset()
    for offset, span in enumerate(spans.values()):
        assert span.name == f"process {at.topic}"
        assert span.parent is not None
        assert (span.parent.span_id, span.parent.is_remote) == (PARENT, True), "the publisher's span"
        wait = found[offset].waits[0]
        assert attributes(span)["messaging.message.id"].encode() == wait.key
        assert attributes(span)["messaging.kafka.offset"] == offset
        assert attributes(span)["messaging.consumer.group.name"] == at.group
        where = {"waitreg.wait.partition": wait.partition, "waitreg.wait.offset": wait.offset}
        assert events(span)["registered"] == where
        assert attributes(span)["waitreg.outcome"] == found[offset].outcomes[0]

    failed = {b"fail", b"slow"}
    errors = {value for value, span in spans.items() if span.status.status_code is StatusCode.ERROR}
    assert errors == {value for value, span in spans.items() if "dead-lettered" in events(span)} == failed
    tries = {value: traced.children(span) for value, span in spans.items()}
    assert {value: [attributes(one).get("error.type") for one in own] for value, own in tries.items()} == {
        b"done": [None],
        b"discard": [None],
        b"fail": ["ValueError"],
        b"flaky": ["wait_registry.errors.TransientError", None],
        b"slow": ["TimeoutError", "TimeoutError"],
    }
    assert [attributes(one).get("waitreg.timed_out") for one in tries[b"slow"]] == [True, True]
    for value, own in tries.items():
        for attempt in own:
            [call] = traced.children(attempt)
            assert call.name == f"call {value!r}", "what the handler traces itself stands below its attempt"
    # The calls are the handler's own: what it records of its errors is its business.
    ours = [span.to_json() for span in traced.spans() if not span.name.startswith("call")]
    assert not [text for text in ours if SECRET.decode() in text], "no key, value, header or message of an error"


def test_spans_of_plain_handlers_are_children_of_attempts(processor_scenario: ScenarioFactory, traced: Traced) -> None:
    def plain(record: Record) -> None:
        traced.tracer.tracer.start_span("call").end()

    at = processor_scenario(plain, 1, max_in_flight=2)
    at.produce(numbers(20))
    at.run_once(traced.tracer)
    attempts = traced.spans("attempt")
    assert len(attempts) == 20
    assert [len(traced.children(attempt)) for attempt in attempts] == [1] * 20


def test_unusual_records_have_their_traces(processor_scenario: ScenarioFactory, traced: Traced) -> None:
    own, redeliver = {"wait.max_message_bytes": 20_000}, {"expiry_policy": "redeliver", "redeliver_to": "origin"}
    at = processor_scenario(accepts, 1, own, {"max__message__bytes": "1000000"}, **redeliver)
    original = Original(at.topic, 0, 77, 1_700_000_000_000, "create", b"key", b"again", ())
    lineage = Lineage.of(
        original,
        wait_id="019a4f8e-0000-8000-8000-000000000001",
        wait_partition=0,
        wait_offset=0,
        group=at.group,
        instance="host-1",
        delivery=2,
    )
    at.produce(
        [
            Outgoing(b"again", b"key", redelivery_headers((), lineage)),
            Outgoing(b"odd", b"key", (("traceparent", b"00-zz"), ("tracestate", b"\xff"))),
            Outgoing(os.urandom(100_000), b"key", (traceparent(0xABC, PARENT),)),
        ]
    )
    running = at.run_once(traced.tracer)
    assert running.done == 2
    spans = {attributes(span)["messaging.kafka.offset"]: span for span in traced.spans("process")}
    first = FirstDelivery(*original[:4], at.group)
    assert trace_of(spans[0]) == first.trace_id()
    assert [link.context.span_id for link in spans[0].links] == [first.redelivery_span_id(2)]
    assert attributes(spans[0])["waitreg.original.offset"] == 77
    assert spans[1].parent is None
    assert attributes(spans[1])["waitreg.outcome"] == "done"
    assert trace_of(spans[2]) == 0xABC
    assert events(spans[2]) == {"dead-lettered": {"waitreg.reason": "unregistrable"}}
    assert attributes(spans[2])["waitreg.outcome"] == "dead_lettered"
    assert id_of(spans[0]) != first.redelivery_span_id(2)


HANDLER = """
import logging
from opentelemetry import trace
tracer, log = trace.get_tracer("shop"), logging.getLogger("shop")

async def handle(record):
    with tracer.start_as_current_span("charge"):
        log.info("charged")
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as own:
        yield own


def test_a_process_sends_all_spans_and_its_log_names_them(
    processor_scenario: ScenarioFactory, services: Services, tmp_path: Path, collector: Collector
) -> None:
    (tmp_path / "shop.py").write_text(HANDLER)
    at = processor_scenario("shop:handle", others={"telemetry.traces": True})
    at.produce(numbers(50))
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_SERVICE_NAME": "shop-orders"}
    service = services.start("processor", at.settings, "--once", environment=variables)
    assert service.wait(120) == 0, service.log.read_text("utf-8")
    spans = {span.span_id: span for span in collector.received}
    assert {span.service for span in spans.values()} == {"shop-orders"}, "the standard variables count"
    charges = [span for span in spans.values() if span.name == "charge"]
    assert len(charges) == 50
    for charge in charges:
        attempt = spans[charge.parent_id]
        assert attempt.name == "attempt"
        assert spans[attempt.parent_id].name == f"process {at.topic}"
    logged = [line for line in service.log_lines() if line.get("logger") == "shop"]
    assert {(line["trace_id"], line["span_id"]) for line in logged} == {
        (charge.trace_id, charge.span_id) for charge in charges
    }


def test_without_a_collector_every_record_is_processed(processor_scenario: ScenarioFactory, services: Services) -> None:
    nowhere = {"telemetry.traces": True, "telemetry.traces_endpoint": "http://127.0.0.1:1/v1/traces"}
    at = processor_scenario("tests.integration.processor.scenario:accepts", 3, nowhere)
    at.produce(numbers(3000))
    # The SDK retries a batch for this many seconds, ten by default; it logs the cause if its first pause (1.2 s) fits.
    service = services.start("processor", at.settings, "--once", environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "2"})
    assert service.wait(120) == 0, service.log.read_text("utf-8")
    assert sum(record.value is None for record in at.topics.read(at.settings.wait.topic)) == 3000
    lines = [str(line["message"]) for line in service.log_lines() if "opentelemetry" in str(line.get("logger"))]
    assert 0 < len(lines) <= 3, lines
    assert "Connection refused" in lines[0]
    assert "Traceback" not in service.log.read_text("utf-8")
