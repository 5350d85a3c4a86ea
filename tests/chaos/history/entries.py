"""What the topics hold, decoded; ``str`` of an entry is its name in a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from wait_registry.records.topics import retry_delay_s
from waitreg.load.manifest import Coordinates, Fingerprint

EXPORTS = (Outcome.EXPIRED, Outcome.REDELIVERED)
"""Outcomes that the sweeper writes."""

Place = tuple[int, int]
"""Partition and offset in the wait topic: the name of a registration."""


def clock(moment_ms: int) -> str:
    """Return a time of day, UTC, with milliseconds."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def at(where: Coordinates) -> str:
    """Return topic/partition@offset."""
    return f"{where[0]}/{where[1]}@{where[2]}"


def wait_at(where: Place) -> str:
    """Return the name of a place in the wait topic."""
    return f"wait {where[0]}@{where[1]}"


@dataclass(frozen=True, slots=True)
class WaitEntry:
    """One entry of the wait topic.

    ``append_ms`` is the broker's time; ``wait_id`` the key as text; ``committed`` whether read_committed shows it;
    ``outcome`` that of a tombstone.
    """

    partition: int
    offset: int
    append_ms: int
    wait_id: str
    committed: bool
    outcome: str = field(default="", kw_only=True)

    @property
    def place(self) -> Place:
        return (self.partition, self.offset)

    def _named(self, what: str) -> str:
        return f"{what} at {wait_at(self.place)} ({clock(self.append_ms)})"


@dataclass(frozen=True, slots=True)
class Registration(WaitEntry):
    """A wait record.

    ``source`` is where a redelivered record was consumed, else None. ``timestamp_type`` is "create", "append" or
    "none".
    """

    original: Coordinates
    timestamp_ms: int
    content: Fingerprint
    expires_at_ms: int
    group: str
    instance: str
    delivery: int
    dead_letter_topic: str
    expiry_policy: str
    max_deliveries: int
    idempotency_key: str
    source: Coordinates | None = None
    timestamp_type: str = "create"

    @property
    def consumed(self) -> Coordinates:
        """Where the record was consumed for this registration."""
        return self.source or self.original

    def __str__(self) -> str:
        return self._named("registration")


@dataclass(frozen=True, slots=True)
class Tombstone(WaitEntry):
    """An entry that ends the registration of its ID."""

    def __str__(self) -> str:
        return self._named(f"tombstone {self.outcome}")


@dataclass(frozen=True, slots=True)
class Unreadable(WaitEntry):
    """An entry that is neither; ``group`` is the group that it names all the same."""

    why: str
    group: str = ""

    def __str__(self) -> str:
        return self._named("unreadable record")


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record of a dead letter, redelivery or retry topic; only this much is known of one that another client wrote.

    ``append_ms`` is the broker's time; ``content`` that of the original record, where there is one.
    """

    topic: str
    partition: int
    offset: int
    append_ms: int
    committed: bool
    content: Fingerprint | None

    @property
    def place(self) -> Coordinates:
        return (self.topic, self.partition, self.offset)

    def __str__(self) -> str:
        return f"record at {at(self.place)}"


@dataclass(frozen=True, slots=True)
class Republished(TopicRecord):
    """A dead letter, a redelivery or a retry record, with its lineage.

    ``registration`` is None for a record that was never registered. ``reason``, ``time_ms`` (DLQ_TIME) and the three
    texts belong to dead letters; a text is None where its header is missing.
    """

    original: Coordinates
    timestamp_ms: int
    wait_id: str
    registration: Place | None
    group: str
    instance: str
    delivery: int
    idempotency_key: str
    timestamp_type: str = "create"
    max_deliveries: int | None = None
    reason: str = ""
    time_ms: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_stacktrace: str | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome of the tombstone that belongs to it, if it was registered."""
        if not self.reason:
            return Outcome.RETRIED if self.delay_s else Outcome.REDELIVERED
        return Outcome.EXPIRED if self.reason == Reason.EXPIRED else Outcome.DEAD_LETTERED

    @property
    def delay_s(self) -> int:
        """The delay of the retry topic that holds it, s; 0 in any other topic."""
        return retry_delay_s(self.topic, self.original[0], self.group) or 0

    def __str__(self) -> str:
        kind = "retry record" if self.delay_s else "redelivery"
        return f"{f'dead letter {self.reason}' if self.reason else kind} at {at(self.place)}"
