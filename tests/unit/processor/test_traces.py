"""A record is processed without a trace if the tracer fails, and traced without an unknown offset."""

from __future__ import annotations

import pytest

from processor.service.traces import Traces
from tests.support.traces import Traced, attributes, traced
from tests.unit.processor.parts import taken
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace

__all__ = ["traced"]


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
