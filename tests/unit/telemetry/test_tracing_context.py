"""A record's headers name its trace, or don't: whatever stands in them, the record is worked on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from tests.support.traces import traceparent
from wait_registry.telemetry.tracing_spans import context_of

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


@given(VALUES, TRACE_IDS, SPAN_IDS)
def test_of_several_the_last_counts(before: bytes | None, trace_id: int, span_id: int) -> None:
    assert parent([("traceparent", before), traceparent(trace_id, span_id)]).span_id == span_id


def test_no_headers_no_parent() -> None:
    assert not parent([]).is_valid


def test_ids_of_zeros_and_unknown_versions_are_no_parent() -> None:
    for value in (
        b"00-00000000000000000000000000000000-0000000000000001-01",
        b"00-00000000000000000000000000000001-0000000000000000-01",
        b"ff-00000000000000000000000000000001-0000000000000001-01",
        b"00-1-2-03",
    ):
        assert not parent([("traceparent", value)]).is_valid, value
