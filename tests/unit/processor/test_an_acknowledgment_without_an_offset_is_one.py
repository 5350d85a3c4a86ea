"""An acknowledgment that doesn't say where the record stands counts all the same: the work and its trace go on."""

from __future__ import annotations

from confluent_kafka import Message

from processor.assigned_partition import AssignedPartition
from processor.settlement import delivery_of
from processor.traces import Traces
from tests.support.traces import Traced, attributes
from tests.unit.processor.entries import batch, entry


def test_a_record_registered_at_an_unknown_offset_is_traced_and_its_dead_letter_names_none() -> None:
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
