"""traceparent and tracestate of any record: a context or none."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from wait_registry.telemetry.tracing_spans import context_of

TRACEPARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def _read(data: bytes) -> Context:
    return context_of(RecordInput.of(data).headers)


def _check(data: bytes) -> None:
    found = get_current_span(_read(data)).get_span_context()
    if found.is_valid:
        last = [value for name, value in RecordInput.of(data).headers if name == "traceparent"][-1]
        assert last is not None and f"{found.trace_id:032x}-{found.span_id:016x}".encode() in last, "another trace"


def _seeds() -> Iterator[bytes]:
    for traceparent in (TRACEPARENT, TRACEPARENT.upper(), b"ff" + TRACEPARENT[2:], TRACEPARENT + b"-more"):
        for tracestate in (b"vendor=1", b"a=1,b=2,a=3", b"x" * 1025):
            yield RecordInput(None, b"", (("traceparent", traceparent), ("tracestate", tracestate))).encode()


TARGET = Target("trace_context", _read, _check, _seeds, (TRACEPARENT, b"=", b",", b"00-"), records=True, share=0.4)
