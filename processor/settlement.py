"""From a result to the tombstone, which waits for the acknowledgment of the dead letter if there is one."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError, Message

from processor.attempts import Failed, Result
from processor.dead_letters import DeadLetters, Delivery
from processor.entry import Entry, EntryState
from processor.outbox import Headers, Outbox
from processor.prefetch import Outstanding
from processor.stats import Stats
from processor.traces import Traces
from wait_registry.errors import DataError, PermanentError
from wait_registry.handler import Discard
from wait_registry.logs import record_fields
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome, tombstone_headers

log = logging.getLogger(__name__)


class Settlement:
    """Writes the outcome of each record.

    A tombstone goes to the partition of its wait record, so that compaction and the sweeper find it after the wait
    record, whatever partitioner wrote that record.

    Args:
        outbox: sends tombstones; a refused one ends the process.
        dead_letters: sends dead letters.
        wait_topic: name of the wait topic.
        outstanding: a record leaves it when its tombstone is queued, one without registration when its dead letter is
            acknowledged.
        stats: counts outcomes when their tombstone is acknowledged.
        traces: begins the trace of a record that can't be registered, if tracing is on.
    """

    def __init__(
        self,
        outbox: Outbox,
        dead_letters: DeadLetters,
        wait_topic: str,
        outstanding: Outstanding,
        stats: Stats,
        traces: Traces | None = None,
    ) -> None:
        self._outbox = outbox
        self._dead_letters = dead_letters
        self._wait_topic = wait_topic
        self._outstanding = outstanding
        self._stats = stats
        self._traces = traces
        self._receipts = {
            outcome: outbox.receipt("a tombstone", wait_topic, _Counted(stats, outcome)) for outcome in Outcome
        }

    def settle(self, entry: Entry, result: Result, elapsed_s: float) -> None:
        """Write the outcome of a started record; ``elapsed_s`` since its first start."""
        if result is None:
            self._stats.observe(Outcome.DONE, elapsed_s)
            self._tombstone(entry, Outcome.DONE)
        elif isinstance(result, Discard):
            log.info("discarded: %s", result.reason, extra=_fields(entry))
            self._stats.observe(Outcome.DISCARDED, elapsed_s)
            self._tombstone(entry, Outcome.DISCARDED)
        else:
            self._fail(entry, result, elapsed_s)

    def unregistrable(self, entry: Entry, error: KafkaError | DataError) -> None:
        """Dead-letter a record whose wait record is too large; its offset may be committed after that."""
        if isinstance(error, DataError):
            seen = PermanentError(f"the record is more than a wait record can carry: {error}")
        else:
            seen = PermanentError(
                f"the wait record is larger than topic {self._wait_topic} takes: {error.str()} ({error.name()}). "
                "Raise its max.message.bytes (wait.max_message_bytes) if records of this size are to be processed."
            )
        self._dead_letter_unregistered(entry, Reason.UNREGISTRABLE, seen)

    def malformed(self, entry: Entry, error: PermanentError) -> None:
        """Dead-letter a record that can't be read whole, so can't be registered; its offset as in `unregistrable`."""
        self._dead_letter_unregistered(entry, Reason.MALFORMED, error)

    def _dead_letter_unregistered(self, entry: Entry, reason: Reason, error: PermanentError) -> None:
        batch = entry.batch
        assert batch is not None
        if entry.state is EntryState.DROPPED:
            batch.acknowledge()  # the next owner consumes it and dead-letters it
            return

        def safe() -> None:
            self._outstanding.finish(entry)
            batch.acknowledge()
            _end_trace(entry, Outcome.DEAD_LETTERED, reason)

        entry.state = EntryState.DEAD_LETTERING
        trace = None if self._traces is None else self._traces.begin(entry)
        self._dead_letters.send(
            delivery_of(entry, registered=False), reason, error, safe, reason is Reason.UNREGISTRABLE
        )
        if trace is not None:
            trace.leave()

    def _fail(self, entry: Entry, failed: Failed, elapsed_s: float) -> None:
        self._stats.observe(Outcome.DEAD_LETTERED, elapsed_s)
        self._dead_letters.send(
            delivery_of(entry, registered=True),
            Reason.FAILED,
            failed.error,
            lambda: self._tombstone(entry, Outcome.DEAD_LETTERED, Reason.FAILED),
            failed.ours,
        )

    def _tombstone(self, entry: Entry, outcome: Outcome, reason: Reason | None = None) -> None:
        headers: Headers = tombstone_headers(outcome)  # type: ignore[assignment]
        self._outbox.send(self._receipts[outcome], entry.wait_partition, entry.wait_id, None, headers)
        self._outstanding.finish(entry)
        if entry.trace is not None:
            _end_trace(entry, outcome, reason)


class _Counted:
    """Counts acknowledged tombstones of one outcome."""

    __slots__ = ("_outcome", "_stats")

    def __init__(self, stats: Stats, outcome: Outcome) -> None:
        self._stats = stats
        self._outcome = outcome.value

    def __call__(self, message: Message) -> None:
        self._stats.settled[self._outcome] += 1


def _end_trace(entry: Entry, outcome: Outcome, reason: Reason | None) -> None:
    if entry.trace is None:
        return
    if reason is not None:
        entry.trace.dead_lettered(reason)
    entry.trace.ended(outcome)


def delivery_of(entry: Entry, *, registered: bool) -> Delivery:
    """Return what a dead letter says about a record and its registration."""
    return Delivery(
        entry.original,
        entry.owner.topic,
        entry.wait_id,
        entry.delivery,
        entry.wait_partition if registered else None,
        entry.wait_offset if registered else None,
    )


def _fields(entry: Entry) -> dict[str, object]:
    original = entry.original
    return record_fields(
        wait_id=entry.wait_id, topic=original.topic, partition=original.partition, offset=original.offset
    )
