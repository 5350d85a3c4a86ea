"""A record is processed without a trace if the tracer fails, and traced without an unknown offset."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from processor.assigned_partition import AssignedPartition
from processor.settlement import delivery_of
from processor.traces import Traces
from tests.support.traces import Traced, attributes
from tests.unit.processor.parts import batch, entry
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace


class Failing(Traced):
    """Quotes what it was given."""

    def record_taken(self, taken: RecordTaken) -> RecordTrace:
        raise RuntimeError(f"can't trace {taken.original.value!r}")

    def __init__(self) -> None:
        super().__init__()
        self.tracer.record_taken = self.record_taken  # type: ignore[assignment,method-assign]


def test_a_failing_tracer_costs_the_trace_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = Failing()
    try:
        traces = Traces(failing.tracer, "shop", "host-1")
        for offset in range(3):
            one = entry(AssignedPartition("orders", 0), offset)
            one.batch = batch(one)
            assert traces.begin(one) is None
            assert one.trace is None
    finally:
        failing.close()
    [said] = [record.getMessage() for record in caplog.records]
    assert said.endswith("the tracer fails (RuntimeError)")


def test_an_acknowledgment_without_an_offset_counts() -> None:
    traced = Traced()
    try:
        one = entry(AssignedPartition("orders", 0), 7)
        one.batch = batch(one)
        # The client has no offset of a record that the broker had already: it answers so to a repeated request.
        one.delivered(None, Message(topic="wait", partition=3))
        trace = Traces(traced.tracer, "shop", "host-1").begin(one)
        assert trace is not None
        trace.leave()
        trace.left()
    finally:
        traced.close()
    delivery = delivery_of(one, registered=True)
    assert (delivery.wait_partition, delivery.wait_offset) == (3, None)
    [span] = traced.spans()
    assert "waitreg.wait.offset" not in attributes(span)
