"""The spans of a record, their IDs and trace context, and the IDs in its log lines."""

from __future__ import annotations

import asyncio
import io
import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from processor.calls.deadline import DeadlineWatchdog
from processor.handlers.open_handler import CURRENT_ATTEMPT
from tests.support.traces import Traced, attributes, events, id_of, trace_of, traceparent
from tests.unit.processor.parts import CLOCK, RECORD, attempts_of
from wait_registry.errors import TransientError
from wait_registry.handler import Record
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.original import Original
from wait_registry.telemetry.tracing import FirstDelivery, RecordConsumed, RecordPublished, context_of

TRACE_IDS = st.integers(1, 2**128 - 1)
SPAN_IDS = st.integers(1, 2**64 - 1)
ALMOST = st.from_regex(rb"\A[0-9a-f]{2}-[0-9a-fA-F]{30,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}(-.{0,5})?\Z")
VALUES = st.none() | st.binary(max_size=80) | ALMOST
HEADERS = st.lists(st.tuples(st.sampled_from(["traceparent", "tracestate", "tenant"]), VALUES), max_size=6)


def parent(headers: list[tuple[str, bytes | None]]) -> trace.SpanContext:
    return trace.get_current_span(context_of(tuple(headers))).get_span_context()


@given(HEADERS)
def test_any_headers_give_a_parent_or_none(headers: list[tuple[str, bytes | None]]) -> None:
    found = parent(headers)
    assert found.is_valid == (found != trace.INVALID_SPAN_CONTEXT)


@given(TRACE_IDS, SPAN_IDS, st.sampled_from([0, 1]))
def test_the_parent_is_the_one_that_was_published(trace_id: int, span_id: int, flags: int) -> None:
    found = parent([traceparent(trace_id, span_id, flags), ("tracestate", b"vendor=1")])
    assert (found.trace_id, found.span_id, found.trace_flags, found.is_remote) == (trace_id, span_id, flags, True)
    assert found.trace_state.get("vendor") == "1"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("traceparent", b"00-00000000000000000000000000000000-0000000000000001-01")],
        [("traceparent", b"00-00000000000000000000000000000001-0000000000000000-01")],
        [("traceparent", b"ff-00000000000000000000000000000001-0000000000000001-01")],
        [("traceparent", b"00-1-2-03")],
    ],
)
def test_no_headers_ids_of_zeros_and_unknown_versions_are_no_parent(headers: list[tuple[str, bytes | None]]) -> None:
    assert not parent(headers).is_valid


UNTRACED = Original("orders", 3, 42, 1_795_227_600_123, "create", b"key", b"value", ())


FIRST = FirstDelivery(*UNTRACED[:4], "shop")


def test_the_computed_ids_never_change() -> None:
    assert f"{FIRST.trace_id():032x}" == "6a0065f9e220f9969ac062d894bce229"
    assert f"{FIRST.redelivery_span_id(2):016x}" == "b137f25b67c41ff5"


def test_records_groups_and_deliveries_have_ids_of_their_own() -> None:
    changes = ({"topic": "orders2"}, {"partition": 4}, {"offset": 43}, {"timestamp_ms": 0}, {"group": "shop2"})
    others = [FIRST._replace(**change) for change in changes]
    assert len({first.trace_id() for first in [FIRST, *others]}) == 6
    assert len({FIRST.redelivery_span_id(attempt) for attempt in (2, 3, 4)}) == 3


WAIT_ID = "019a4f8e-0000-8000-8000-000000000001"
TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
PARENTED = (("tenant", b"acme"), traceparent(TRACE, PARENT))
ORIGINAL = Original("orders", 3, 42, 1_795_227_600_123, "create", b"card 4711", b"amount 4711", PARENTED)
CONSUMED = RecordConsumed(
    "orders", 3, 42, ORIGINAL, "shop", "host-1", WAIT_ID, 1, 1_795_227_600_500, 2, 9, 1_795_227_600_510
)
AGAIN = replace(CONSUMED, topic="orders.shop.redeliver", partition=0, offset=5, delivery=2)
LINEAGE = Lineage.of(
    ORIGINAL, wait_id=WAIT_ID, wait_partition=2, wait_offset=9, group="shop", instance="host-1", delivery=2
)


def process(traced: Traced, consumed: RecordConsumed) -> ReadableSpan:
    """Trace a record that is done without an attempt; return its span."""
    record = traced.tracer.record_consumed(consumed)
    record.leave()
    record.ended("done")
    return traced.spans("process")[-1]


def test_a_span_names_the_record_and_nothing_of_its_content(traced: Traced) -> None:
    record = traced.tracer.record_consumed(CONSUMED)
    record.attempt_started(1)
    record.attempt_ended(ValueError("no such card: 4711"))
    record.leave()
    record.dead_lettered("failed")
    record.ended("dead_lettered")
    [span] = traced.spans("process")
    assert (span.name, span.kind, span.status.status_code) == ("process orders", SpanKind.CONSUMER, StatusCode.ERROR)
    assert span.parent is not None
    assert (trace_of(span), span.parent.span_id, span.parent.is_remote) == (TRACE, PARENT, True)
    assert span.start_time == 1_795_227_600_500_000_000, "when it was consumed"
    assert attributes(span) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "3",
        "messaging.kafka.offset": 42,
        "messaging.consumer.group.name": "shop",
        "messaging.client.id": "host-1",
        "messaging.message.id": WAIT_ID,
        "waitreg.delivery": 1,
        "waitreg.attempts": 1,
        "waitreg.outcome": "dead_lettered",
        "error.type": "ValueError",
    }
    assert events(span) == {
        "registered": {"waitreg.wait.partition": 2, "waitreg.wait.offset": 9},
        "dead-lettered": {"waitreg.reason": "failed"},
    }
    [attempt] = traced.spans("attempt")
    assert events(attempt) == {"exception": {"exception.type": "ValueError"}}
    assert not [one.name for one in traced.spans() if "4711" in one.to_json() or "acme" in one.to_json()]


def test_a_header_that_opentelemetry_cannot_read_is_quoted_in_no_log_line(traced: Traced) -> None:
    secret = (traceparent(TRACE, PARENT), ("tracestate", b"Card=4111 1111 1111 1111"))
    lines = io.StringIO()
    # Not caplog: pytest listens to loggers that don't propagate as well.
    handler = logging.StreamHandler(lines)
    logging.getLogger().addHandler(handler)
    try:
        span = process(traced, replace(CONSUMED, original=ORIGINAL._replace(headers=secret)))
        traced.tracer.tracer.start_span("charge", attributes={"card": object()}).end()  # type: ignore[dict-item]
    finally:
        logging.getLogger().removeHandler(handler)
    assert trace_of(span) == TRACE
    assert lines.getvalue() == ""


def test_a_record_that_succeeds_in_the_end_is_no_error(traced: Traced) -> None:
    record = traced.tracer.record_consumed(CONSUMED)
    record.attempt_started(1)
    record.attempt_ended(TransientError("busy"))
    record.attempt_started(2)
    record.attempt_over_limit()
    record.attempt_ended(TimeoutError())
    record.attempt_started(3)
    record.attempt_ended(None)
    record.leave()
    record.ended("done")
    [span] = traced.spans("process")
    assert span.status.status_code is StatusCode.UNSET
    assert "error.type" not in attributes(span)
    tries = traced.children(span)
    assert [attributes(one).get("waitreg.attempt") for one in tries] == [1, 2, 3]
    errors = ["wait_registry.errors.TransientError", "TimeoutError", None]
    assert [attributes(one).get("error.type") for one in tries] == errors
    assert [attributes(one).get("waitreg.timed_out") for one in tries] == [None, True, None]


def test_a_record_left_to_the_registry_says_so_and_leaves_nothing_current(traced: Traced) -> None:
    record = traced.tracer.record_consumed(CONSUMED)
    record.attempt_started(1)
    record.left()
    assert [attributes(span)["waitreg.outcome"] for span in traced.spans()] == ["left", "left"]
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_later_attempt_left_ends_its_span_in_its_task(traced: Traced, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(record: Record) -> None:
        if CURRENT_ATTEMPT.get() == 1:
            raise ConnectionResetError
        call.revoke()
        await asyncio.sleep(3600)

    record, own = traced.tracer.record_consumed(CONSUMED), asyncio.current_task()
    assert own is not None
    call = DeadlineWatchdog(CLOCK, 30.0).watch(own)
    call.start(RECORD, CLOCK.monotonic(), trace=record)
    attempts = attempts_of(handler, backoff_initial_s=0.001)
    with pytest.raises(asyncio.CancelledError):
        await attempts.run(RECORD, call, CLOCK.monotonic())
    record.left()
    assert [attributes(span).get("waitreg.outcome") for span in traced.spans()] == [None, "left", "left"]
    assert (caplog.text, trace.get_current_span().get_span_context().is_valid) == ("", False)


@pytest.mark.parametrize("headers", [(), (("traceparent", b"00-1-2-03"),), (("traceparent", None),)])
def test_a_record_without_a_trace_starts_one(traced: Traced, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    original = ORIGINAL._replace(headers=headers)
    first, again = (process(traced, replace(consumed, original=original)) for consumed in (CONSUMED, AGAIN))
    assert (first.parent, again.parent) == (None, None)
    assert trace_of(first) == trace_of(again) == FirstDelivery(*ORIGINAL[:4], "shop").trace_id()
    assert id_of(first) != id_of(again)


@pytest.mark.parametrize("headers", [(), PARENTED])
def test_a_redelivery_links_to_the_sweepers_span(traced: Traced, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    published = RecordPublished(
        "orders.shop.redeliver", tuple(redelivery_headers(headers, LINEAGE)), "redelivered", 1_000, 2_000
    )
    traced.tracer.record_published(published)
    again = process(traced, replace(AGAIN, original=ORIGINAL._replace(headers=headers)))
    [sent] = traced.spans("send")
    assert (sent.kind, sent.start_time, sent.end_time) == (SpanKind.PRODUCER, 1_000, 2_000)
    assert trace_of(sent) == trace_of(again)
    assert sent.parent == again.parent, "both continue what the record came in"
    [link] = again.links
    assert (link.context.trace_id, link.context.span_id) == (trace_of(sent), id_of(sent))
    assert attributes(again)["waitreg.original.offset"] == 42
    assert attributes(again)["messaging.destination.name"] == "orders.shop.redeliver"


def test_sampling_follows_the_parent_and_is_passed_on(traced: Traced) -> None:
    unsampled = ORIGINAL._replace(headers=(traceparent(TRACE, PARENT, flags=0),))
    record = traced.tracer.record_consumed(replace(CONSUMED, original=unsampled))
    record.attempt_started(1)
    sent = dict(traced.tracer.http_headers())["traceparent"]
    record.attempt_ended(None)
    record.leave()
    record.ended("done")
    assert traced.spans() == []
    assert (sent[3:35], sent[-2:]) == (f"{TRACE:032x}", "00")
