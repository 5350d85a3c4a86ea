"""What happens to the engine, and what it wants done: events in, effects out.

Both carry batches. A partition is named by its topic and number. Entries are the engine's own objects: the shell hands
them back in later events, and reads them, but only the engine changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wait_registry.records.topics import TopicPartition

if TYPE_CHECKING:
    from processor.protocol.partition import Recorded
    from processor.protocol.record import Entry


class Instant(NamedTuple):
    """One moment by two clocks: the wall clock, ms since the epoch, and a clock that never steps, s."""

    wall_ms: int
    s: float


class Lifetime(NamedTuple):
    """When registrations made together expire, ms since the epoch.

    By the clock that never steps, s: when they were made, when they expire, and the latest moment to call a handler for
    the first time.
    """

    expires_at_ms: int
    registered_s: float
    expires_s: float
    start_by_s: float


# ---- events


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
    """Records of one partition were polled: their offsets, the shell's own values of them, and their sizes in bytes.

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

    A failed commit may be done all the same. A partition in neither has no answer yet.

    Attributes:
        to: the commit, if it was answered at once; the answers of the others come in the order of the commits.
    """

    confirmed: Mapping[TopicPartition, int]
    failed: Sequence[TopicPartition] = ()
    to: Commit | Release | None = None


class CallsEnded(NamedTuple):
    """Calls ended, each with its result; None if it was cancelled and has none."""

    calls: Sequence[tuple[Entry, Result | None]]


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


Event: TypeAlias = (
    Assigned
    | Polled
    | ReadTo
    | EndsSeen
    | Registered
    | RegistrationRefused
    | CommitAnswered
    | CallsEnded
    | Published
    | RetryRefused
    | DeadLetterRefused
    | Revoking
    | Revoked
    | Lost
    | PollingWithoutRoom
    | SlotsBlocked
    | Tick
    | Draining
)


# ---- results of calls, and what becomes of records


class Done(NamedTuple):
    """The work is done."""


class Discarded(NamedTuple):
    """The record needs no work."""

    reason: str


class Failed(NamedTuple):
    """All attempts failed.

    ``retriable`` is whether a later attempt may succeed, and ``retry_after_s`` the least pause before it that the
    handler asks for, s. ``ours`` and ``reason`` are as in `DeadLetter`.
    """

    error: BaseException
    ours: bool = False
    retriable: bool = False
    retry_after_s: float = 0
    reason: str = "failed"


class Retry(NamedTuple):
    """The record goes to the retry topic with this delay, s; ``ours`` is as in `DeadLetter`."""

    delay_s: int
    error: BaseException
    ours: bool = False


class DeadLetter(NamedTuple):
    """The record goes to the dead letter topic: a reason of DLQ_REASON, and the error.

    ``ours`` is whether the error's message is this system's own: a handler's message may quote the record.
    """

    reason: str
    error: BaseException | None = None
    ours: bool = False


Result: TypeAlias = Done | Discarded | Failed
Outcome: TypeAlias = Done | Discarded | DeadLetter | Retry


# ---- effects


class Register(NamedTuple):
    """Write wait records, in this order."""

    entries: Sequence[Entry]
    lifetime: Lifetime


class Commit(NamedTuple):
    """Commit these offsets, and record these with them; one commit is in flight at most."""

    offsets: Mapping[TopicPartition, int]
    recorded: Mapping[TopicPartition, Recorded]


class Start(NamedTuple):
    """Call the handler for these records."""

    entries: Sequence[Entry]


class Cancel(NamedTuple):
    """Cancel the calls of these records; they have no outcome here."""

    entries: Sequence[Entry]


class WriteTombstones(NamedTuple):
    """Write the tombstones of registered records that have an outcome."""

    entries: Sequence[Entry]


class Publish(NamedTuple):
    """Write the dead letters or retry records of these records, and report the acknowledgments."""

    entries: Sequence[Entry]


class Pause(NamedTuple):
    """Stop fetching these partitions."""

    places: Sequence[TopicPartition]


class Resume(NamedTuple):
    """Fetch these partitions again."""

    places: Sequence[TopicPartition]


class Rewind(NamedTuple):
    """Continue to poll a paused partition at this offset; what the client has fetched behind it is fetched again."""

    place: TopicPartition
    offset: int


class Release(NamedTuple):
    """Commit these offsets synchronously, record these with them, then give the revoked partitions up."""

    offsets: Mapping[TopicPartition, int]
    recorded: Mapping[TopicPartition, Recorded]


Effect: TypeAlias = Register | Commit | Start | Cancel | WriteTombstones | Publish | Pause | Resume | Rewind | Release
