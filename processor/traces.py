"""Hands the processor's records to a tracer; exists only while tracing is on."""

from __future__ import annotations

import logging

from processor.entry import Entry
from wait_registry.telemetry.tracing import RecordTaken, RecordTrace, Tracer

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

    def begin(self, entry: Entry) -> RecordTrace | None:
        """Begin the trace of a record that is registered, or can't be; None if the tracer fails."""
        batch, owner = entry.batch, entry.owner
        assert batch is not None
        known = entry.wait_offset is not None and entry.wait_offset >= 0
        event = RecordTaken(
            owner.topic,
            owner.partition,
            entry.offset,
            entry.original,
            *self._process,
            entry.wait_id,
            entry.delivery,
            batch.sent_ms,
            entry.wait_partition,
            entry.wait_offset if known else None,
            batch.acknowledged_ms,
        )
        try:
            entry.trace = self._tracer.record_taken(event)
        except Exception as error:  # noqa: BLE001 - whatever fails here, the record must be processed
            if not self._failed:
                # The class alone: a tracer's message may quote a header.
                log.warning("records are processed without traces: the tracer fails (%s)", type(error).__name__)
            self._failed = True
        return entry.trace
