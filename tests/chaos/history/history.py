"""What is known from outside about one run: data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.chaos.history.entries import Registration, Republished, TopicRecord, WaitEntry
from wait_registry.kafka.topic_specs import retry_topics
from wait_registry.records.operation import Event
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import Call
from waitreg.load.manifest import Coordinates, Fingerprint

Partition = tuple[str, int]
"""Topic and number of a partition."""


@dataclass(frozen=True, slots=True)
class Input:
    """A record of an input topic; ``registered_bytes`` is the most that it can take in a wait record."""

    place: Coordinates
    timestamp_ms: int
    content: Fingerprint
    timestamp_type: str
    registered_bytes: int


@dataclass(frozen=True, slots=True)
class Poll:
    """What the broker answered between ``began_ms`` and ``ended_ms``, asked in the order of the fields.

    So what a later field lacks did not exist when an earlier one was true. ``committed`` has the group's offsets
    (partitions without any are skipped), ``wait_stable`` and ``wait_ends`` last stable offset and high watermark of the
    wait topic by partition, ``letter_ends`` the high watermarks of dead letter, redelivery and retry
    topics.
    """

    began_ms: int
    ended_ms: int
    committed: Mapping[Partition, int]
    wait_stable: Mapping[int, int]
    wait_ends: Mapping[int, int]
    letter_ends: Mapping[Partition, int]


class WaitRow(NamedTuple):
    """A row of ``wait``: the registration that it shows; where it shows none, ``unreadable`` says why."""

    wait_id: str
    registration: Registration | None
    unreadable: str = ""


class DeadLetterRow(NamedTuple):
    """A row of ``dead_letter``: the record that it shows, of which any field may be None."""

    record: TopicRecord | Republished
    finished_late: bool = False
    unreadable: str = ""


class QuarantineRow(NamedTuple):
    place: Coordinates
    error: str


class ProgressRow(NamedTuple):
    topic: str
    partition: int
    next_offset: int


class Tables(NamedTuple):
    """The sink's tables in one snapshot, at ``at_ms``."""

    wait: Sequence[WaitRow]
    dead_letter: Sequence[DeadLetterRow]
    quarantine: Sequence[QuarantineRow]
    progress: Sequence[ProgressRow]
    at_ms: int = 0


class Act(StrEnum):
    """What an operator, or another program, did with records."""

    PASSED = "passed over"  # the group's offset was moved forward, past them
    REWOUND = "rewound"  # it was moved back
    REPLAYED = "replayed"  # a replay has ended with 0
    DELETED = "deleted"  # before the group had committed them


class Concerned(NamedTuple):
    """Records of one partition with which one thing was done."""

    act: Act
    partition: Partition
    offsets: range


class FaultDone(NamedTuple):
    """A fault, or an action of an operator, as it happened.

    ``target`` is the service ("processor-1", "sink-1"), the server ("broker", "postgres", "downstream"), "group" (all
    processors, or those that join in a storm), "input" or "everything" (all services, the broker and Postgres). A fault
    of a link is a fault of the service behind it. The fault lasted from ``began_ms`` until it was healed at
    ``ended_ms``. ``happened`` is the proof, in words; if it is empty, the run is void. ``concerned`` are the records
    that an action concerns, and no others: a fault concerns none.
    """

    name: str
    target: str
    began_ms: int
    ended_ms: int
    happened: str
    concerned: Sequence[Concerned] = ()


class MemorySample(NamedTuple):
    """The resident memory of all processes of a service at one moment."""

    name: str
    bytes: int


@dataclass(frozen=True)
class History:
    """One run of one consumer group, whose wait and dead letter topics no other group writes to.

    Nothing may have been compacted away, so the run is shorter than ``segment.ms``. ``calls`` is None if the handler
    isn't the downstream: then tombstones are the only evidence of work. ``committed_at_end`` is read before everything
    else, ``ends`` (high watermarks of wait, dead letter and redelivery topics) after the topics. ``tables`` is None if
    Postgres isn't judged, ``snapshots`` (the tables during the run) if they weren't read. ``modes`` are the
    registration modes of a processor's starts, again and again. ``operations`` is what the operations topic has,
    ``begins`` the first offset of each partition, except of wait and operations topic.
    """

    settings: Settings
    cluster_id: str
    inputs: Sequence[Input]
    calls: Sequence[Call] | None
    polls: Sequence[Poll]
    wait_log: Sequence[WaitEntry]
    dead_letters: Sequence[TopicRecord]
    redelivered: Sequence[TopicRecord]
    committed_at_end: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    tables: Tables | None
    faults: Sequence[FaultDone] = ()
    snapshots: Sequence[Tables] | None = None
    samples: Sequence[MemorySample] = ()
    modes: Sequence[str] = ("eager",)
    operations: Sequence[Event] = ()
    begins: Mapping[Partition, int] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return self.settings.processor.group


def mode_of(start: int, modes: Sequence[str]) -> str:
    """Return the registration mode of a processor's first, second, ... start: all of them, again and again."""
    return modes[(start - 1) % len(modes)]


def topics_again(settings: Settings) -> Sequence[str]:
    """Return the topics from which the group gets records again; those of redeliveries need not exist."""
    redelivered = [redelivery_topic(topic, settings.processor.group) for topic in settings.processor.topics]
    return [*redelivered, *retry_topics(settings)]
