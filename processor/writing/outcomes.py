"""Writes the outcomes of records: tombstones, dead letters and retry records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import Message

from processor.calls.traces import Traces
from processor.inbox import Inbox
from processor.intake.delivery import Delivery
from processor.protocol.events import DeadLetterRefused, Published, RetryRefused
from processor.protocol.record import Entry, State
from processor.protocol.results import DeadLetter, Discarded, Done, Retry
from processor.writing.dead_letters import DeadLetters
from processor.writing.outbox import Outbox
from processor.writing.retry_records import RetryRecords
from wait_registry.errors import PermanentError
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome, tombstone_headers

# What tombstones, dead letters and metrics call them.
OUTCOMES: Final[Mapping[type[Any], Outcome]] = {
    Done: Outcome.DONE,
    Discarded: Outcome.DISCARDED,
    DeadLetter: Outcome.DEAD_LETTERED,
    Retry: Outcome.RETRIED,
}


class Outcomes:
    """Writes them, and turns the acknowledgments of dead letters and retry records into events.

    A tombstone goes to the partition of its wait record, so that compaction and the sweeper find it after the wait
    record, whatever partitioner wrote that record.

    Args:
        outbox: sends them; a refused one ends the process.
        dead_letters: sends dead letters.
        retry_records: sends retry records.
        wait_topic: name of the wait topic.
        inbox: gets what the broker answers; its counters count outcomes whose tombstones are acknowledged.
        traces: begins the trace of a record that is dead-lettered without a call, if tracing is on.
    """

    def __init__(
        self,
        outbox: Outbox,
        dead_letters: DeadLetters,
        retry_records: RetryRecords,
        wait_topic: str,
        inbox: Inbox,
        traces: Traces | None = None,
    ) -> None:
        self._outbox = outbox
        self._dead_letters = dead_letters
        self._retry_records = retry_records
        self._inbox = inbox
        self._traces = traces
        self._acknowledged: list[Entry] = []
        # Those that the broker has acknowledged since the last report.
        self._settled: dict[Outcome, list[Message]] = {outcome: [] for outcome in OUTCOMES.values()}
        # By the kind of outcome.
        self._tombstones = {
            kind: outbox.receipt("a tombstone", wait_topic, self._settled[outcome].append, tombstone_headers(outcome))
            for kind, outcome in OUTCOMES.items()
        }

    def write_tombstones(self, entries: Sequence[Entry]) -> None:
        """Write the tombstones of registered records."""
        self._outbox.expect(len(entries))
        put, tombstones = self._outbox.put, self._tombstones
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
            outcome = entry.outcome
            if isinstance(outcome, Retry):
                self._retry_records.send(record, outcome, partial(self._safe, entry), partial(self._refuse, entry))
                continue
            assert isinstance(outcome, DeadLetter)
            trace = None
            if self._traces is not None and record.trace is None:
                trace = self._traces.begin(record)
            error = outcome.error or PermanentError("no error was given")
            self._dead_letters.send(
                record,
                Reason(outcome.reason),
                error,
                partial(self._safe, entry),
                partial(self._refuse_dead_letter, entry),
                outcome.ours,
            )
            if trace is not None:
                trace.leave()

    def _safe(self, entry: Entry) -> None:
        self._acknowledged.append(entry)

    def _refuse(self, entry: Entry, error: BaseException) -> None:
        self._inbox.put(RetryRefused(entry, error))

    def _refuse_dead_letter(self, entry: Entry) -> None:
        self._inbox.put(DeadLetterRefused(entry))

    def report(self) -> None:
        """Count acknowledged tombstones, and report acknowledged dead letters and retry records."""
        for outcome, messages in self._settled.items():
            if messages:
                self._inbox.stats.count_settled(outcome, len(messages))
                messages.clear()
        if not self._acknowledged:
            return
        acknowledged, self._acknowledged = self._acknowledged, []
        for entry in acknowledged:
            if entry.state is State.PUBLISHING:
                # Without a registration there is no tombstone, which would be counted.
                self._inbox.stats.count_settled(outcome_of(entry))
                _end_trace(entry.record, entry)
        self._inbox.put(Published(acknowledged))


def outcome_of(entry: Entry) -> Outcome:
    """Return what a record's tombstone says."""
    return OUTCOMES[entry.outcome.__class__]


def _end_trace(record: Delivery, entry: Entry) -> None:
    if record.trace is None:
        return
    if isinstance(entry.outcome, DeadLetter):
        record.trace.dead_lettered(Reason(entry.outcome.reason))
    record.trace.ended(outcome_of(entry))
