"""Kafka as the processor sees it: input logs, a wait log, dead letters, a group. No time passes here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from wait_registry.records.topics import TopicPartition

RecordId = tuple[str, int, int]  # topic, partition, offset
MOST_CALLS_OF_DEADLY = 2
RETRIES: TopicPartition = ("t.g.retry.2s", 0)
RETRY_DELAY_S = 2


class Nature(Enum):
    """What a handler makes of a record."""

    FAST = "fast"
    SLOW = "slow"
    FAILING = "failing"
    FLAKY = "flaky"  # its first call fails, and a later one may succeed
    DEADLY = "deadly"  # its call kills the process
    TOO_LARGE = "too large"  # for the wait topic
    MALFORMED = "malformed"


class Committed(NamedTuple):
    """A committed offset and its metadata, None where another client wrote it.

    ``is_own`` is whether the metadata is the group's, ``kept_below`` is as in `CommitMetadata`, and ``named`` is the
    offset that the metadata names if it isn't this one.
    """

    offset: int
    bound: int | None
    mode: str | None
    is_own: bool = True
    kept_below: int | None = None
    named: int | None = None


class WaitEntry(NamedTuple):
    """One entry of the wait log: a wait record, or a tombstone with its outcome.

    ``wait_id`` is the key, ``process`` who wrote it.
    """

    record: RecordId
    wait_id: str
    outcome: str | None
    process: int
    expires_ms: int = 0


class Breach(AssertionError):
    """A guarantee is broken."""


@dataclass
class World:
    """What outlives every process."""

    logs: dict[TopicPartition, list[tuple[int, Nature]]]
    story: list[str] = field(default_factory=list)
    metadata: bool = True  # whether commits have some
    refuses_letters: bool = False  # whether a dead letter may be too large at first
    ahead_ms: int = 0  # by how much the timestamps of some retry records are in the future
    markers: int = 0  # how many offsets behind the last record of an input are no records
    unknown_ends: float = 0.0  # how likely it is that the log's end isn't known at an assignment
    # How many records of a log have been produced; all of them, if it isn't named here.
    produced: dict[TopicPartition, int] = field(default_factory=dict)
    committed: dict[TopicPartition, Committed] = field(default_factory=dict)
    owner: dict[TopicPartition, int] = field(default_factory=dict)
    generation: dict[TopicPartition, int] = field(default_factory=dict)
    wait_log: list[WaitEntry] = field(default_factory=list)
    dead_letters: list[RecordId] = field(default_factory=list)
    # What was published to the retry topic: the record, and when, by the retry record.
    retried: dict[RecordId, tuple[RecordId, int]] = field(default_factory=dict)
    done: list[RecordId] = field(default_factory=list)
    calls: dict[RecordId, int] = field(default_factory=dict)
    # Records that may be left to expire: their process died, or no commit is known to cover them.
    may_expire: set[RecordId] = field(default_factory=set)
    # Records whose registration may be left though they are settled: their process died, or wrote it when the record
    # was another's already. Whoever polls a record takes care of what was registered before.
    may_be_left: set[RecordId] = field(default_factory=set)
    # Those that were registered when they were another process's already. An owner takes care of those in its warm-up
    # (docs/guarantees.md, "What is not guaranteed").
    registered_late: set[RecordId] = field(default_factory=set)
    # The first offset that a log still has, if not all.
    first: dict[TopicPartition, int] = field(default_factory=dict)
    # Partitions whose offsets an operator has moved.
    moved: set[TopicPartition] = field(default_factory=set)
    # Records that an operator has the group pass over, or deleted; and all that ever were.
    skipped: set[RecordId] = field(default_factory=set)
    ever_skipped: set[RecordId] = field(default_factory=set)
    # The last entry of each wait ID.
    last: dict[str, WaitEntry] = field(default_factory=dict)

    def nature(self, record: RecordId) -> Nature:
        """Return what a handler makes of a record."""
        topic, partition, offset = record
        return next(nature for at, nature in self.logs[(topic, partition)] if at == offset)

    def is_slow(self, record: RecordId) -> bool:
        """Return whether its call lasts long, as do some of those that fail or aren't registrable."""
        nature = self.nature(record)
        return nature is Nature.SLOW or (nature in (Nature.FAILING, Nature.TOO_LARGE) and record[2] % 2 == 0)

    def log(self, place: TopicPartition) -> list[tuple[int, Nature]]:
        """Return what has been produced into a partition."""
        first = self.first.get(place, 0)
        return [record for record in self.logs[place][: self.produced.get(place)] if record[0] >= first]

    def end(self, place: TopicPartition) -> int:
        """Return the end of a log: what is no record comes together with the record before it."""
        log, produced = self.logs[place], self.produced.get(place)
        if produced is not None and produced < len(log):
            return log[produced][0]
        markers = 0 if place == RETRIES else self.markers
        return log[-1][0] + 1 + markers if log else 0

    def start(self, place: TopicPartition) -> int:
        """Return the offset at which the next owner of a partition starts."""
        committed, first = self.committed.get(place), self.first.get(place, 0)
        return first if committed is None else max(first, committed.offset)

    def delete(self, place: TopicPartition, before: int) -> None:
        """Delete what a process has committed of a retry topic.

        Raises:
            Breach: that isn't all handled.
        """
        for offset, _ in self.log(place):
            record = (*place, offset)
            if offset < before and (record in self.skipped or not self.is_safe(record)):
                raise Breach(f"P1: {record} is deleted, and the group hasn't handled it")
        self.first[place] = max(before, self.first.get(place, 0))

    def is_safe(self, record: RecordId) -> bool:
        """Return whether a commit may pass a record."""
        return bool(self.settled(record) or self.registrations(record))

    def produce(self, place: TopicPartition) -> None:
        """Produce the next record of a partition."""
        if (count := self.produced.get(place)) is not None:
            self.produced[place] = count + 1
            if count + 1 >= len(self.logs[place]):
                del self.produced[place]

    def registrations(self, record: RecordId) -> list[WaitEntry]:
        """Return the wait records of a record that no tombstone follows; one at most if its wait ID is computed."""
        return [entry for entry in self.last.values() if entry.record == record and entry.outcome is None]

    def settled(self, record: RecordId) -> bool:
        """Return whether the outcome of a record is durable, or was observed by its process before a commit."""
        return record in self.done or record in self.dead_letters or record in self.first_deliveries()

    def first_deliveries(self) -> set[RecordId]:
        """Return the records that were published to the retry topic."""
        return {record for record, _ in self.retried.values()}

    def append(self, entry: WaitEntry) -> None:
        """Take an entry of the wait log.

        Raises:
            Breach: a tombstone without an outcome, or before what it depends on.
        """
        record = entry.record
        if entry.outcome == "dead_lettered" and record not in self.dead_letters:
            raise Breach(f"P1: a tombstone of {record} before its dead letter")
        if entry.outcome == "retried" and record not in self.first_deliveries():
            raise Breach(f"P1: a tombstone of {record} before its retry record")
        if entry.outcome in ("done", "discarded") and record not in self.done:
            raise Breach(f"P1: a tombstone of {record}, whose call has not ended")
        self.story.append(f"    {record} {entry.outcome or 'registered'}")
        self.wait_log.append(entry)
        self.last[entry.wait_id] = entry

    def dead_letter(self, record: RecordId) -> None:
        """Take a dead letter."""
        self.dead_letters.append(record)

    def retry(self, record: RecordId, now_ms: int) -> RecordId:
        """Take a retry record, and return it: its next call succeeds."""
        log = self.logs[RETRIES]
        offset = log[-1][0] + 1 if log else 0
        log.append((offset, Nature.SLOW if record[2] % 2 else Nature.FAST))
        retry = (*RETRIES, offset)
        self.retried[retry] = record, now_ms
        return retry

    def begin_call(self, process: int, record: RecordId, now_ms: int) -> None:
        """Take a call of a process.

        Raises:
            Breach: it comes too early.
        """
        if record in self.retried and now_ms < self.retried[record][1] + RETRY_DELAY_S * 1000:
            raise Breach(f"D1: the call of {record} begins before its delay is over")

    def end_call(self, process: int, record: RecordId, done: bool) -> None:
        """Note that a call ended by itself, and whether its work is done."""
        if done:
            self.done.append(record)

    def give(self, place: TopicPartition, process: int) -> None:
        """Give a partition to a process, in a new generation of the group."""
        self.owner[place] = process
        self.generation[place] = self.generation.get(place, 0) + 1

    def commit(self, generation: int, place: TopicPartition, committed: Committed) -> bool:
        """Take a commit; return False if it is of another generation.

        Raises:
            Breach: the commit passes a record that is neither settled nor registered.
        """
        if self.generation[place] != generation:
            return False
        for offset, _ in self.logs[place]:
            record = (*place, offset)
            if offset < committed.offset and not self.is_safe(record) and record not in self.skipped:
                raise Breach(f"P2: process {self.owner[place]} committed {place} to {committed.offset}, past {record}")
        self.story.append(f"    {place} {committed}")
        self.committed[place] = committed
        return True

    def all_committed(self) -> bool:
        """Return whether the next owners of all partitions would start at their ends."""
        return all(self.start(place) == self.end(place) for place, log in self.logs.items() if log)

    def records(self) -> list[RecordId]:
        """Return every record of the input."""
        return [(*place, offset) for place, log in self.logs.items() for offset, _ in log]

    def judge_end(self, calm: bool) -> None:
        """Judge after everything has come to rest.

        Args:
            calm: no process died, none lost a partition without notice, and every revocation was answered.

        Raises:
            Breach: a record is lost or left to expire without need, or the registration of a settled record is left,
                or a record killed too many processes.
        """
        for record in self.records():
            settled, left = self.settled(record), self.registrations(record)
            if record in self.skipped:
                continue
            if not settled and not left:
                raise Breach(f"P1: {record} ({self.nature(record).value}) is lost")
            if not settled and record not in self.may_expire:
                raise Breach(f"P1: {record} is left to expire, though its process lives")
            if settled and left and (calm or record not in self.may_be_left):
                raise Breach(f"P1: {record} is settled, and its registration is left, though nothing went wrong")
        self.judge_calls()

    def judge_calls(self) -> None:
        """Judge the calls so far.

        Raises:
            Breach: a record killed too many processes.
        """
        for record, calls in self.calls.items():
            if self.nature(record) is Nature.DEADLY and calls > MOST_CALLS_OF_DEADLY:
                raise Breach(f"P1: {record} killed its process {calls} times")
