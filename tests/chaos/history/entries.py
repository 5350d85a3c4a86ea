"""What is in the topics, as an independent reader decodes it."""

from __future__ import annotations

from dataclasses import dataclass

from wait_registry.demo.manifest import Coordinates, Fingerprint

DONE, DISCARDED, DEAD_LETTERED = "done", "discarded", "dead_lettered"
RETRIED = "retried"
"""An outcome of the format that nothing writes yet."""
EXPIRED, REDELIVERED = "expired", "redelivered"
FAILED, UNREGISTRABLE, MALFORMED = "failed", "unregistrable", "malformed"
EXPORTS = (EXPIRED, REDELIVERED)
"""Outcomes that the sweeper writes."""

Place = tuple[int, int]
"""Partition and offset in the wait topic: the name of a registration."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a wait record says; ``source`` is where a redelivered record was consumed, else None.

    ``timestamp_type`` is "create", "append" or "none".
    """

    original: Coordinates
    timestamp_ms: int
    content: Fingerprint
    wait_id: str
    expires_at_ms: int
    group: str
    instance: str
    delivery: int
    dead_letter_topic: str
    expiry_policy: str
    max_deliveries: int
    source: Coordinates | None = None
    timestamp_type: str = "create"

    @property
    def consumed(self) -> Coordinates:
        """Where the record was consumed for this registration."""
        return self.source or self.original


@dataclass(frozen=True, slots=True)
class WaitEntry:
    """One entry of the wait topic: a registration, a tombstone with its outcome, or one that can't be read.

    ``append_ms`` is the broker's time; ``wait_id`` the key as text; ``committed`` whether read_committed shows it.
    ``unreadable`` says why it is neither registration nor tombstone, ``group`` which group it names all the same.
    """

    partition: int
    offset: int
    append_ms: int
    wait_id: str
    committed: bool
    registration: Registration | None = None
    outcome: str = ""
    unreadable: str = ""
    group: str = ""

    @property
    def place(self) -> Place:
        """Partition and offset."""
        return (self.partition, self.offset)

    @property
    def is_tombstone(self) -> bool:
        """Whether it resolves what stands under its id."""
        return self.registration is None and not self.unreadable


@dataclass(frozen=True, slots=True)
class Lineage:
    """The block behind the original headers; ``registration`` is None for what was never registered."""

    original: Coordinates
    timestamp_ms: int
    wait_id: str
    registration: Place | None
    group: str
    instance: str
    delivery: int
    timestamp_type: str = "create"


@dataclass(frozen=True, slots=True)
class Republished:
    """One record of a dead letter topic or of a redelivery topic.

    ``timestamp_ms`` is the record's own (the broker's time); ``content`` is that of the original, cut out; ``lineage``
    is None for a record that no part of this system wrote; ``reason``, ``time_ms`` (DLQ_TIME) and the three
    texts are of dead letters only; a text is None where its header is missing.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    committed: bool
    content: Fingerprint
    lineage: Lineage | None = None
    reason: str = ""
    time_ms: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_stacktrace: str | None = None

    @property
    def place(self) -> Coordinates:
        """Topic, partition and offset of this very record."""
        return (self.topic, self.partition, self.offset)

    @property
    def outcome(self) -> str:
        """The outcome of the tombstone that goes with it, if it was registered."""
        if not self.reason:
            return REDELIVERED
        return EXPIRED if self.reason == EXPIRED else DEAD_LETTERED
