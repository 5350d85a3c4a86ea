"""Hands the processor's records to a tracer; exists only while tracing is on."""

from __future__ import annotations

import logging
from typing import Any

from processor.assigned_partition import AssignedPartition
from processor.entry import Entry
from wait_registry.records.consumed import Consumed
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace, Registered, Tracer

log = logging.getLogger(__name__)


class Traces:
    """Begins the traces of records, each current in the calling task until it is left.

    If the tracer fails, the record is processed without a trace; that is logged once.

    Args:
        tracer: makes the traces.
        group, instance: who processes the records.
    """

    def __init__(self, tracer: Tracer, group: str, instance: str) -> None:
        self._tracer = tracer
        self._process = (group, instance)
        self._failed = False

    @classmethod
    def of(cls, tracer: Tracer | None, group: str, instance: str) -> Traces | None:
        """Return None if tracing is off."""
        return None if tracer is None else cls(tracer, group, instance)

    def begin(self, entry: Entry) -> RecordTrace | None:
        """Begin the trace of a record that is registered, or can't be; None if the tracer fails."""
        batch = entry.batch
        assert batch is not None
        registered = None
        if entry.wait_offset is not None and entry.wait_offset >= 0:
            registered = Registered(entry.wait_partition, entry.wait_offset, batch.acknowledged_ms)
        entry.trace = self._begin(
            entry.owner, entry.offset, entry.original, entry.wait_id, entry.delivery, batch.sent_ms, registered
        )
        return entry.trace

    def begin_unregistered(
        self, owner: AssignedPartition, offset: int, taken: Consumed, wait_id: str, taken_ms: int
    ) -> RecordTrace | None:
        """Begin the trace of a record that is processed without a registration; None if the tracer fails."""
        return self._begin(owner, offset, taken.original, wait_id, taken.delivery, taken_ms, None)

    def _begin(self, owner: AssignedPartition, offset: int, original: Any, *rest: Any) -> RecordTrace | None:
        event = RecordTaken(owner.topic, owner.partition, offset, original, *self._process, *rest)
        try:
            return self._tracer.record_taken(event)
        except Exception as error:  # noqa: BLE001 - whatever fails here, the record must be processed
            if not self._failed:
                # The class alone: a tracer's message may quote a header.
                log.warning("records are processed without traces: the tracer fails (%s)", type(error).__name__)
            self._failed = True
            return None
