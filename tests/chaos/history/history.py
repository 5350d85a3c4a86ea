"""Everything known from outside about one run, and nothing but data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.chaos.history.entries import Place, Registration, Republished, WaitEntry
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates, Fingerprint, Published
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.root import Settings

Partition = tuple[str, int]
"""Topic and number of a partition."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen between ``began_ms`` and ``ended_ms``, in the order of the fields.

    So whatever a later field lacks was not there when an earlier one was true. ``committed`` has the group's offsets
    (those of partitions without any are skipped), ``wait_ends`` and ``wait_stable`` high watermark and last stable
    offset of the wait topic by partition, ``letter_ends`` the high watermarks of dead letter and redelivery topics.
    """

    began_ms: int
    ended_ms: int
    committed: Mapping[Partition, int]
    wait_stable: Mapping[int, int]
    wait_ends: Mapping[int, int]
    letter_ends: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class WaitRow:
    """A row of ``wait``: the registration it shows, and where that stands; ``unreadable`` when it shows none."""

    wait_id: str
    place: Place
    registration: Registration | None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A row of ``dead_letter``; what is null for a record that isn't ours is None."""

    place: Coordinates
    content: Fingerprint | None
    reason: str | None
    time_ms: int | None
    wait_id: str | None
    original: Coordinates | None
    timestamp_ms: int | None
    registration: Place | None
    group: str | None
    instance: str | None
    delivery: int | None
    finished_late: bool = False
    unreadable: str = ""
    timestamp_type: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_stacktrace: str | None = None


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A row of ``quarantine``: the place of what couldn't be read."""

    place: Coordinates
    error: str


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """A row of ``sink_progress``."""

    topic: str
    partition: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Tables:
    """The four tables that the sink owns, in one snapshot."""

    wait: Sequence[WaitRow]
    dead_letter: Sequence[DeadLetterRow]
    quarantine: Sequence[QuarantineRow]
    progress: Sequence[ProgressRow]


@dataclass(frozen=True, slots=True)
class View:
    """What the tables were like at some moment between ``began_ms`` and ``ended_ms`` while the run continued."""

    began_ms: int
    ended_ms: int
    tables: Tables


@dataclass(frozen=True, slots=True)
class FaultDone:
    """One fault as it was done.

    ``target`` is the service it hit ("processor-1", "sink", "sweeper-2"), or the server that all of them need
    ("broker", "postgres", "downstream"), or "group" (all processors at once, or those that come for a storm), or
    "everything" (all services, the broker and Postgres at once). A cut or slow link is a fault of the service behind
    it. ``began_ms`` to ``ended_ms`` is how long it lasted, up to its being healed (the process runs again, the link
    flows). ``happened`` is the proof, in words; empty when it did not happen, which makes the run void.
    """

    name: str
    target: str
    began_ms: int
    ended_ms: int
    happened: str


class RssSample(NamedTuple):
    """The resident memory of one process at one moment; ``name`` as in `FaultDone.target`."""

    ms: int
    name: str
    pid: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a run.

    ``max_in_flight`` is N of one processor, ``prefetch`` its ``prefetch_max``, ``processes`` how many processors
    are meant to run at once (with all that join for a while). ``rss_bytes`` is by service ("processor", "sink"), which
    is a sample's name up to its last "-"; what isn't named is not judged. ``prefetch_bytes`` is a processor's
    ``prefetch_max_bytes``, ``chunk_rows`` a sweeper's; None isn't judged.
    """

    max_in_flight: int
    prefetch: int
    processes: int
    rss_bytes: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[RssSample] = ()
    prefetch_bytes: int | None = None
    chunk_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the processors of a run were told; who checks takes it from the settings, not from what they then said.

    ``ttl_ms`` is how long a registration lives, ``skew_ms`` how long after that it falls due, ``attempt_ms`` how long
    one try of a handler may take, of which a record gets ``tries`` each time it is taken, if it is answered with one of
    ``retry_statuses`` or not at all; a call answered with one of ``discard_statuses`` discards its record;
    ``registration_bytes`` is how large a wait record may be. Policy, attempts and topic are what a registration says
    of them; an empty policy is none that holds for all.
    """

    ttl_ms: int
    skew_ms: int
    attempt_ms: int
    tries: int
    retry_statuses: Sequence[int]
    discard_statuses: Sequence[int]
    registration_bytes: int
    dead_letter_topic: str
    expiry_policy: str
    max_deliveries: int

    @classmethod
    def of(cls, settings: Settings) -> Told:
        """Take it from the settings, whose dead letter topic is a name and no template."""
        processor = settings.processor
        return cls(
            ttl_ms=round(processor.ttl_s * 1000),
            skew_ms=round(settings.wait.skew_allowance_s * 1000),
            attempt_ms=round(processor.handler_timeout_s * 1000),
            tries=processor.max_attempts,
            retry_statuses=processor.http.retry_statuses,
            discard_statuses=processor.http.discard_statuses,
            registration_bytes=settings.wait.max_message_bytes,
            dead_letter_topic=settings.dead_letter.topic,
            expiry_policy=str(processor.expiry_policy),
            max_deliveries=processor.max_deliveries,
        )


@dataclass(frozen=True)
class History:
    """One run of one consumer group, whose wait and dead letter topics nobody else writes to.

    Nothing may have been compacted away: the run is shorter than ``segment.ms``. ``calls`` is None when the handler
    isn't our downstream: then a tombstone's word is all that tells of work done. ``published`` is the generator's list,
    and what else was found in the input topics. ``committed_at_end`` is read before everything else, ``ends`` (high
    watermarks of wait, dead letter and redelivery topics) after the topics. The four tables are None when Postgres
    isn't to be judged, ``views`` (the same tables, again and again while the run continued) when nobody looked at them.
    ``registered_bytes`` is the most that each record of the input topics can take in a wait record, ``input_bytes``
    what it counts for in its processor's hands, ``timestamp_types`` whether its time is that of its making or of its
    appending. Without ``told``, what depends on settings isn't judged.
    """

    group: str
    cluster_id: str
    wait_topic: str
    published: Sequence[Published]
    calls: Sequence[Call] | None
    looks: Sequence[Look]
    wait_log: Sequence[WaitEntry]
    dead_letters: Sequence[Republished]
    redelivered: Sequence[Republished]
    committed_at_end: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    wait_rows: Sequence[WaitRow] | None
    dead_letter_rows: Sequence[DeadLetterRow] | None
    quarantine_rows: Sequence[QuarantineRow] | None
    progress_rows: Sequence[ProgressRow] | None
    faults: Sequence[FaultDone]
    limits: Limits
    told: Told | None = None
    views: Sequence[View] | None = None
    registered_bytes: Mapping[Coordinates, int] = field(default_factory=dict)
    input_bytes: Mapping[Coordinates, int] = field(default_factory=dict)
    timestamp_types: Mapping[Coordinates, str] = field(default_factory=dict)


def redelivery_topics(inputs: Sequence[str], group: str) -> Sequence[str]:
    """Return the topics through which a group gets expired records of its input topics again; they needn't exist."""
    return [redelivery_topic(topic, group) for topic in inputs]
