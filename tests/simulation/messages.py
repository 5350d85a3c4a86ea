"""What a simulated process knows, hears and sends."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from processor.protocol.record import Entry
from processor.protocol.results import Done, Retry
from processor.writing.outcomes import OUTCOMES
from tests.simulation.world import Nature, RecordId, WaitEntry, World
from wait_registry.records.topics import TopicPartition


class Killed(Exception):
    """The process is dead."""


class Taken(NamedTuple):
    """What the process knows of a record."""

    id: RecordId
    wait_id: str
    generation: int  # of the group when it was polled

    @property
    def key(self) -> bytes | None:
        """The key of the record."""
        return key_of(self.id)


class News(NamedTuple):
    """What the next poll after a moment tells."""

    arrives_s: float
    place: TopicPartition
    lost_s: float | None  # None: it is assigned
    generation: int


class Letter(NamedTuple):
    """A dead letter or a retry record."""

    record: RecordId
    retry: bool

    def arrive(self, world: World, now_ms: int) -> None:
        """Let it arrive in the world."""
        if self.retry:
            world.retry(self.record, now_ms)
        else:
            world.dead_letter(self.record)


class Dead(NamedTuple):
    """What a dead process has sent: each queue arrives in order, or from some point on not at all."""

    queues: tuple[deque[WaitEntry], deque[Letter]]

    def arrive(self, queue: deque[WaitEntry] | deque[Letter], world: World, now_ms: int) -> None:
        """Let the first of a queue arrive in the world."""
        waits, letters = self.queues
        if queue is letters:
            letters.popleft().arrive(world, now_ms)
            return
        written = waits.popleft()
        if written.outcome is None:
            world.may_be_left.add(written.record)
            world.registered_late.add(written.record)
        if written.outcome is not None or world.nature(written.record) is not Nature.TOO_LARGE:
            world.append(written)


def key_of(record: RecordId) -> bytes | None:
    """Return the key of a record: one of two, or none."""
    return (b"even", b"odd", None)[record[2] % 3]


def taken(entry: Entry) -> Taken:
    """Return what the process knows of a record."""
    assert isinstance(entry.record, Taken)
    return entry.record


def record_of(entry: Entry) -> RecordId:
    """Return which record it is."""
    return taken(entry).id


def outcome_of(entry: Entry) -> str:
    """Return the outcome that a tombstone names."""
    return OUTCOMES[type(entry.outcome or Done())].value


def letter_of(entry: Entry) -> Letter:
    """Return what a failed record's process publishes."""
    return Letter(record_of(entry), isinstance(entry.outcome, Retry))
