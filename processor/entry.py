"""One record between its consumption and its tombstone."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, Message

from wait_registry.handler import Record
from wait_registry.records.original import Original, Source
from wait_registry.telemetry.tracing import RecordTrace

if TYPE_CHECKING:
    from processor.assigned_partition import AssignedPartition
    from processor.committable import RegistrationBatch


class EntryState(Enum):
    """How far a record has come; only the event loop's thread changes it."""

    REGISTERING = "registering"  # its wait record isn't acknowledged, or its batch waits behind another one
    DEAD_LETTERING = "dead_lettering"  # can't be registered; its dead letter isn't acknowledged
    HELD = "held"  # registered, in the warm-up of its assignment
    READY = "ready"  # waits for a worker
    RENEWING = "renewing"  # waits for its second registration, since its time ran short before it could start
    STARTED = "started"  # its handler has been called; a tombstone will follow
    DROPPED = "dropped"  # released to the next owner before its handler was called
    FINISHED = "finished"  # its tombstone is queued, or its dead letter acknowledged when it wasn't registered


class Lifetime(NamedTuple):
    """When registrations made together expire: in ms since the epoch, as a datetime (UTC), and on the monotonic clock.

    On the monotonic clock too: ``start_by_s``, the latest moment to call a handler for the first time, and
    ``registered_s``, when they were made.
    """

    expires_at_ms: int
    expires_at: datetime
    expires_s: float
    start_by_s: float
    registered_s: float


class Entry:
    """A consumed record and its registration (slots: there are up to ``prefetch_max`` of them).

    ``offset`` is the position consumed now, in the partition ``owner``; ``original`` has the coordinates of the first
    delivery.
    """

    __slots__ = (
        "batch",
        "delivery",
        "lifetime",
        "offset",
        "original",
        "owner",
        "size",
        "source",
        "state",
        "trace",
        "wait_id",
        "wait_offset",
        "wait_partition",
    )

    def __init__(
        self,
        original: Original,
        source: Source | None,
        delivery: int,
        wait_id: str,
        owner: AssignedPartition,
        offset: int,
        size: int,
        lifetime: Lifetime,
    ) -> None:
        self.original = original
        self.source = source
        self.delivery = delivery
        self.wait_id = wait_id
        self.owner = owner
        self.offset = offset
        self.size = size
        self.lifetime = lifetime
        self.batch: RegistrationBatch | None = None
        self.wait_partition = -1
        # None if the client reported the acknowledgment without an offset.
        self.wait_offset: int | None = -1
        self.state = EntryState.REGISTERING
        self.trace: RecordTrace | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Take the delivery report of the wait record (called by ``producer.poll``)."""
        batch = self.batch
        assert batch is not None
        if error is not None:
            batch.refused(self, error)
            return
        self.wait_partition = message.partition()
        self.wait_offset = message.offset()
        batch.pending -= 1
        if batch.pending == 0:
            batch.completed(message)

    def record(self, group: str) -> Record:
        """Return what the handler sees."""
        topic, partition, offset, timestamp_ms, _, key, value, headers = self.original
        return Record(
            topic,
            partition,
            offset,
            timestamp_ms,
            key,
            value,
            headers,
            self.delivery,
            self.wait_id,
            group,
            self.lifetime.expires_at,
        )
