"""From what the processor has in hand to what a tracer is told; exists only while tracing is on."""

from __future__ import annotations

import logging

from processor.assigned_partition import AssignedPartition
from processor.entry import Entry
from wait_registry.records.consumed import Consumed
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace, Registered, Tracer

log = logging.getLogger(__name__)


class Traces:
    """Begins the traces of records, each current in the calling task until it is left.

    A tracer that fails costs the record its trace and nothing else; that is told once.

    Args:
        tracer: makes them.
        group, instance: who works on the records.
    """

    def __init__(self, tracer: Tracer, group: str, instance: str) -> None:
        self._tracer = tracer
        self._group = group
        self._instance = instance
        self._failed = False

    @classmethod
    def of(cls, tracer: Tracer | None, group: str, instance: str) -> Traces | None:
        """Return None when tracing is off."""
        return None if tracer is None else cls(tracer, group, instance)

    def begin(self, entry: Entry) -> RecordTrace | None:
        """Begin the trace of a record that is registered, or can't be; None when the tracer fails."""
        batch = entry.batch
        assert batch is not None
        registered = None
        if entry.wait_offset is not None and entry.wait_offset >= 0:
            registered = Registered(entry.wait_partition, entry.wait_offset, batch.acknowledged_ms)
        entry.trace = self._begin(
            RecordTaken(
                entry.owner.topic,
                entry.owner.partition,
                entry.offset,
                entry.original,
                self._group,
                self._instance,
                entry.wait_id,
                entry.delivery,
                batch.sent_ms,
                registered,
            )
        )
        return entry.trace

    def begin_unregistered(
        self, owner: AssignedPartition, offset: int, taken: Consumed, wait_id: str, taken_ms: int
    ) -> RecordTrace | None:
        """Begin the trace of a record that is worked on without a registry; None when the tracer fails."""
        return self._begin(
            RecordTaken(
                owner.topic,
                owner.partition,
                offset,
                taken.original,
                self._group,
                self._instance,
                wait_id,
                taken.delivery,
                taken_ms,
                None,
            )
        )

    def _begin(self, taken: RecordTaken) -> RecordTrace | None:
        try:
            return self._tracer.record_taken(taken)
        except Exception as error:  # noqa: BLE001 - whatever it is, the record is to be worked on
            if not self._failed:
                # Its class alone: what a tracer says may quote a header.
                log.warning("records are processed without their traces: the tracer fails (%s)", type(error).__name__)
            self._failed = True
            return None
