"""What a tracer raises ends no worker: the record is worked on without a trace."""

from __future__ import annotations

import pytest

from processor.assigned_partition import AssignedPartition
from processor.traces import Traces
from tests.support.traces import Traced
from tests.unit.processor.entries import batch, entry
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace


class Failing(Traced):
    """Quotes what it was given."""

    def record_taken(self, taken: RecordTaken) -> RecordTrace:
        raise RuntimeError(f"can't trace {taken.original.value!r}")

    def __init__(self) -> None:
        super().__init__()
        self.tracer.record_taken = self.record_taken  # type: ignore[assignment,method-assign]


def test_a_record_that_cannot_be_traced_is_begun_without_a_trace_and_its_content_is_not_told(
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
