"""From what the processor has in hand to what a tracer is told; exists only while tracing is on."""

from __future__ import annotations

from processor.assigned_partition import AssignedPartition
from processor.entry import Entry
from wait_registry.records.consumed import Consumed
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace, Registered, Tracer


class Traces:
    """Begins the traces of records, each current in the calling task until it is left.

    Args:
        tracer: makes them.
        group, instance: who works on the records.
    """

    def __init__(self, tracer: Tracer, group: str, instance: str) -> None:
        self._tracer = tracer
        self._group = group
        self._instance = instance

    @classmethod
    def of(cls, tracer: Tracer | None, group: str, instance: str) -> Traces | None:
        """Return None when tracing is off."""
        return None if tracer is None else cls(tracer, group, instance)

    def begin(self, entry: Entry) -> RecordTrace:
        """Begin the trace of a record that is registered, or can't be."""
        batch = entry.batch
        assert batch is not None
        registered = None
        if entry.wait_offset >= 0:
            registered = Registered(entry.wait_partition, entry.wait_offset, batch.acknowledged_ms)
        entry.trace = self._tracer.record_taken(
            RecordTaken(
                entry.owner.topic,
                entry.owner.partition,
                entry.offset,
                entry.original,
                self._group,
                self._instance,
                entry.wait_id,
                entry.attempt,
                batch.sent_ms,
                registered,
            )
        )
        return entry.trace

    def begin_unregistered(
        self, owner: AssignedPartition, offset: int, taken: Consumed, wait_id: str, taken_ms: int
    ) -> RecordTrace:
        """Begin the trace of a record that is worked on without a registry."""
        return self._tracer.record_taken(
            RecordTaken(
                owner.topic,
                owner.partition,
                offset,
                taken.original,
                self._group,
                self._instance,
                wait_id,
                taken.attempt,
                taken_ms,
                None,
            )
        )
