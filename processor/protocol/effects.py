"""What the engine wants done, in order; and what it asks of `processor.flow`, which decides how much at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from processor.protocol.events import Calls, Instant, SlotsBlocked
from processor.protocol.partition import Partition, Recorded
from processor.protocol.record import Entry
from processor.protocol.results import Lifetime
from wait_registry.records.topics import TopicPartition


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


class SlotControl(Protocol):
    """The worker slots: which records wait for one, and which start next. `processor.flow.slots` describes each."""

    # Records of one partition are polled, may start, and have settled, or were given up and have no call.
    def enter(self, entries: Sequence[Entry]) -> None: ...
    def add(self, entries: Sequence[Entry]) -> None: ...
    def leave(self, entries: Iterable[Entry]) -> None: ...

    # Records start (they take the step START here), and those that must be registered again before are returned; when
    # these are registered again, `renewed` lets them start (RELEASE).
    waiting: int

    def start(self, now_s: float) -> tuple[list[Entry], list[Entry]]: ...
    def take_overdue(self, now_s: float) -> list[Entry]: ...
    def reported(self, entry: Entry) -> None: ...
    def renewed(self, entries: Iterable[Entry]) -> None: ...

    # Calls run, block, and end.
    running: int

    @property
    def free(self) -> int: ...
    def set_blocked(self, event: SlotsBlocked, now: Instant) -> None: ...
    def cancel_blocked(self, now_s: float) -> Entry | None: ...
    def with_cancelled(self, calls: Calls, now_s: float) -> Calls: ...
    def ended(self, calls: Calls, answered: int, failed: int, now_s: float) -> None: ...

    # Nothing of these partitions starts until they are given up.
    def hold(self, partitions: Iterable[Partition]) -> None: ...
    def holds(self, partition: Partition) -> bool: ...


class FlowControl(Protocol):
    """How much at once: the slots, and which partitions are fetched. `processor.flow.flow` describes each."""

    @property
    def slots(self) -> SlotControl: ...

    draining: bool
    paused: bool

    @property
    def next_due_s(self) -> float: ...
    @property
    def prefetch_limit(self) -> int: ...
    def room(self) -> int: ...
    def is_worth_a_poll(self, room: int) -> bool: ...

    # What has changed, and which partitions are paused or fetched again therefore.
    def assigned(self, partition: Partition) -> list[Pause | Resume]: ...
    def polled(self, partition: Partition, sizes: Sequence[int]) -> list[Pause | Resume]: ...
    def polling_without_room(self, answer_is_near: bool) -> list[Pause | Resume]: ...
    def is_early(self, partition: Partition, due_s: float, now_s: float) -> list[Pause | Resume]: ...
    def confirmed(self, partition: Partition) -> list[Pause | Resume]: ...
    def resume(self, now_s: float) -> list[Pause | Resume]: ...
    def drain(self) -> list[Pause | Resume]: ...
    def fetch(self, partitions: Iterable[Partition]) -> list[Pause | Resume]: ...
    def give_up(self, partitions: Collection[Partition], left: Iterable[Entry]) -> None: ...
