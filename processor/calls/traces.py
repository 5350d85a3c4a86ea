"""Hands the processor's records to a tracer; exists only while tracing is on."""

from __future__ import annotations

import logging

from processor.intake.delivery import Delivery
from wait_registry.telemetry.tracing import RecordConsumed, RecordTrace, Tracer

log = logging.getLogger(__name__)


class Traces:
    """Begins the traces of records, each current in the calling task until it is left.

    If the tracer fails, the record is processed without a trace; each class of error is logged once.

    Args:
        tracer: makes the traces.
        group, instance: who processes the records.
    """

    def __init__(self, tracer: Tracer, group: str, instance: str) -> None:
        self._tracer = tracer
        self._process = (group, instance)
        self._logged: set[str] = set()

    def begin(self, record: Delivery) -> RecordTrace | None:
        """Begin the trace of a record that starts or is dead-lettered without a call; None if the tracer fails."""
        known = record.wait_offset is not None and record.wait_offset >= 0
        event = RecordConsumed(
            *record.place,
            record.polled_offset,
            record.original,
            *self._process,
            record.wait_id,
            record.delivery,
            record.sent_ms,
            record.wait_partition,
            record.wait_offset if known else None,
            record.acknowledged_ms,
        )
        try:
            record.traced(self._tracer.record_consumed(event))
        except Exception as error:  # noqa: BLE001 - whatever fails here, the record must be processed
            # The class alone: a tracer's message may quote a header.
            name = type(error).__name__
            if name not in self._logged:
                self._logged.add(name)
                log.warning("records are processed without traces: the tracer fails (%s)", name)
        return record.trace
