"""Writes the outcomes of records: tombstones, dead letters and retry records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import Message

from processor.calls.traces import Traces
from processor.inbox import Inbox
from processor.intake.delivery import Delivery
from processor.protocol.events import DeadLetterRefused, Published, RetryRefused
from processor.protocol.record import Entry, State
from processor.protocol.results import DeadLetter, Discarded, Done, Retry
from processor.writing.failed_records import FailedRecords
from processor.writing.outbox import Outbox, Receipt
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome, tombstone_headers

# What tombstones, dead letters and metrics call them.
OUTCOMES: Final[Mapping[type[Any], Outcome]] = {
    Done: Outcome.DONE,
    Discarded: Outcome.DISCARDED,
    DeadLetter: Outcome.DEAD_LETTERED,
    Retry: Outcome.RETRIED,
}


@dataclass
class Outcomes:
    """Writes them, and turns the acknowledgments of dead letters and retry records into events.

    A tombstone goes to the partition of its wait record, so that compaction and the sweeper find it after the wait
    record, whatever partitioner wrote that record.

    Args:
        outbox: sends them; a refused one ends the process.
        failed_records: sends dead letters and retry records.
        wait_topic: name of the wait topic.
        inbox: gets what the broker answers; its counters count outcomes whose tombstones are acknowledged.
        traces: begins the trace of a record that is dead-lettered without a call, if tracing is on.

    Attributes:
        tombstones: how many have no answer of the broker.
    """

    outbox: Outbox
    failed_records: FailedRecords
    wait_topic: str
    inbox: Inbox
    traces: Traces | None = None

    def __post_init__(self) -> None:
        self.tombstones = 0
        self._acknowledged: list[Entry] = []
        # Those that the broker has acknowledged since the last report.
        self._settled: dict[Outcome, list[Message]] = {outcome: [] for outcome in OUTCOMES.values()}
        # By the kind of outcome.
        self._tombstones = {
            kind: Receipt(
                self.outbox, "a tombstone", self.wait_topic, self._settled[outcome].append, tombstone_headers(outcome)
            )
            for kind, outcome in OUTCOMES.items()
        }

    def write_tombstones(self, entries: Sequence[Entry]) -> None:
        """Write the tombstones of registered records."""
        self.outbox.expect(len(entries))
        self.tombstones += len(entries)
        put, tombstones = self.outbox.put, self._tombstones
        for entry in entries:
            record: Delivery = entry.record
            receipt = tombstones[entry.outcome.__class__]
            put(receipt.topic, None, record.wait_id, record.wait_partition, receipt, receipt.headers)
            if record.trace is not None:
                _end_trace(record, entry)

    def publish(self, entries: Iterable[Entry]) -> None:
        """Write the dead letters or retry records of records that failed or can't be registered."""
        for entry in entries:
            record: Delivery = entry.record
            outcome, safe = entry.outcome, partial(self._acknowledged.append, entry)
            if isinstance(outcome, Retry):
                self.failed_records.send_retry(record, outcome, safe, partial(self._refuse, entry))
                continue
            assert isinstance(outcome, DeadLetter)
            trace = None
            if self.traces is not None and record.trace is None:
                trace = self.traces.begin(record)
            self.failed_records.send_dead_letter(
                record, outcome, safe, partial(self.inbox.put, DeadLetterRefused(entry))
            )
            if trace is not None:
                trace.leave()

    def _refuse(self, entry: Entry, error: BaseException) -> None:
        self.inbox.put(RetryRefused(entry, error))

    def report(self) -> None:
        """Count acknowledged tombstones, and report acknowledged dead letters and retry records."""
        for outcome, messages in self._settled.items():
            if messages:
                self.inbox.stats.count_settled(outcome, len(messages))
                self.tombstones -= len(messages)
                messages.clear()
        if not self._acknowledged:
            return
        acknowledged = self._acknowledged.copy()
        self._acknowledged.clear()
        for entry in acknowledged:
            if entry.state is State.PUBLISHING:
                # Without a registration there is no tombstone, which would be counted.
                self.inbox.stats.count_settled(outcome_of(entry))
                _end_trace(entry.record, entry)
        self.inbox.put(Published(acknowledged))


def outcome_of(entry: Entry) -> Outcome:
    """Return what a record's tombstone says."""
    return OUTCOMES[entry.outcome.__class__]


def _end_trace(record: Delivery, entry: Entry) -> None:
    if record.trace is None:
        return
    if isinstance(entry.outcome, DeadLetter):
        record.trace.dead_lettered(Reason(entry.outcome.reason))
    record.trace.ended(outcome_of(entry))
