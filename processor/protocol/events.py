"""What happens to the engine.

Events carry batches. A partition is named by its topic and number. Entries are the engine's own objects: the loop hands
them back in later events, and reads them, but only the engine changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from processor.protocol.record import Entry
from processor.protocol.results import Result
from wait_registry.records.topics import TopicPartition


class Instant(NamedTuple):
    """One moment by two clocks: the wall clock, ms since the epoch, and a clock that never steps, s."""

    wall_ms: int
    s: float


class Assigned(NamedTuple):
    """A partition was assigned.

    ``start`` is the committed offset, None if there is none. ``recorded_bound`` and ``recorded_mode`` are what the
    commit's metadata says of the previous owner's `uncommitted_max` and registration mode, ``end`` is the end of the
    log at the assignment; each is None if it is unknown. ``delay_s`` is how long its records wait until they are due,
    s, and ``retries`` whether it belongs to a retry topic.
    """

    place: TopicPartition
    start: int | None
    recorded_bound: int | None
    recorded_mode: str | None
    end: int | None
    delay_s: float = 0
    retries: bool = False


class Polled(NamedTuple):
    """Records of one partition were polled: their offsets, the loop's own values of them, and their sizes in bytes.

    ``malformed`` has the offsets of records that can't be registered as they are, and why, ``foreign`` the offsets of
    those that aren't this group's and are passed over. ``timestamps_ms`` are needed of delayed partitions only.
    """

    place: TopicPartition
    offsets: Sequence[int]
    records: Sequence[object]
    sizes: Sequence[int]
    malformed: Mapping[int, BaseException] = MappingProxyType({})
    foreign: Collection[int] = ()
    timestamps_ms: Sequence[int] = ()


class ReadTo(NamedTuple):
    """Every record of a partition below this offset was polled; the last one may be followed by transaction markers."""

    place: TopicPartition
    offset: int


class EndsSeen(NamedTuple):
    """The logs of partitions have all records below these offsets by now, also of those that aren't polled."""

    ends: Mapping[TopicPartition, int]


class Registered(NamedTuple):
    """The broker acknowledged wait records."""

    entries: Sequence[Entry]


class RegistrationRefused(NamedTuple):
    """A record is too large for the wait topic or its readers. Any other refusal ends the process."""

    entry: Entry
    error: BaseException | None = None


class CommitAnswered(NamedTuple):
    """The broker answered a commit: the offsets that are committed, and the partitions whose commit failed.

    A failed commit may be done all the same. A partition in neither has no answer yet. ``to`` is the effect, if it was
    answered at once; the answers of the others come in the order of the commits.
    """

    confirmed: Mapping[TopicPartition, int]
    failed: Sequence[TopicPartition] = ()
    to: object = None


# Each with its result; None if it was cancelled and has none.
Calls: TypeAlias = Sequence[tuple[Entry, Result | None]]


class CallsEnded(NamedTuple):
    """Calls ended."""

    calls: Calls


class Published(NamedTuple):
    """The broker acknowledged the dead letters or retry records of these records."""

    entries: Sequence[Entry]


class RetryRefused(NamedTuple):
    """A retry record is too large for its topic. Any other refusal ends the process."""

    entry: Entry
    error: BaseException


class DeadLetterRefused(NamedTuple):
    """A dead letter is too large for its topic or for the client. Any other refusal ends the process."""

    entry: Entry


class Revoking(NamedTuple):
    """The group takes partitions away: nothing more of them starts, and what is in flight is waited for."""

    places: Sequence[TopicPartition]


class Revoked(NamedTuple):
    """That is over, and the partitions are given up."""

    places: Sequence[TopicPartition]


class Lost(NamedTuple):
    """Partitions are gone: another member may have them already, and no commit is possible."""

    places: Sequence[TopicPartition]


class PollingWithoutRoom(NamedTuple):
    """The client is polled until the next `Tick` although there is no room: a member of the group must poll."""


class SlotsBlocked(NamedTuple):
    """How many calls have an outcome and keep their worker slot, because they don't end."""

    blocked: int


class Tick(NamedTuple):
    """Time has passed. ``polled`` is whether the client was polled since the last one, and its news passed on."""

    polled: bool = True


class Draining(NamedTuple):
    """The process stops: poll nothing more."""


_OfGroup: TypeAlias = Assigned | Revoking | Revoked | Lost
_OfRecords: TypeAlias = Polled | ReadTo | EndsSeen | CallsEnded | SlotsBlocked
_OfAnswers: TypeAlias = Registered | RegistrationRefused | CommitAnswered | Published | RetryRefused | DeadLetterRefused
Event: TypeAlias = _OfGroup | _OfRecords | _OfAnswers | PollingWithoutRoom | Tick | Draining
