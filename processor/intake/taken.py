"""A polled record as the shell knows it: decoded, and where its registration is."""

from __future__ import annotations

import math
from typing import NamedTuple

from confluent_kafka import Message

from wait_registry.errors import PermanentError
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.headers import Headers
from wait_registry.records.original import TIMESTAMP_TYPES
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_id import wait_id
from wait_registry.telemetry.tracing import RecordTrace


class Consumer(NamedTuple):
    """Who consumes: what wait IDs need."""

    cluster_id: str
    group: str


class Taken:
    """One delivery of a record.

    ``place`` and ``offset`` are where it was polled now, ``consumed`` has the coordinates of its first delivery.
    ``wait_partition`` and ``wait_offset`` are those of its registration, -1 and None before it has one; a client may
    report an acknowledgment without an offset. ``sent_ms`` and ``acknowledged_ms`` are when its wait record was sent
    and acknowledged, by this host's clock, and ``started_s`` when its call started, on the clock that never steps.
    """

    __slots__ = (
        "_wait_id",
        "acknowledged_ms",
        "by",
        "consumed",
        "offset",
        "place",
        "sent_ms",
        "started_s",
        "timestamp_ms",
        "trace",
        "wait_offset",
        "wait_partition",
    )

    def __init__(self, by: Consumer, place: TopicPartition, offset: int, timestamp_ms: int, taken: Consumed) -> None:
        self.by = by
        self.place = place
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.consumed = taken
        self._wait_id: str | None = None
        self.wait_partition = -1
        self.wait_offset: int | None = None
        self.sent_ms = 0
        self.acknowledged_ms = 0
        self.started_s = math.inf
        self.trace: RecordTrace | None = None

    def find_wait_id(self) -> str:
        """Return the wait ID, which is computed when it is first needed."""
        if self._wait_id is None:
            by, (topic, partition) = self.by, self.place
            self._wait_id = wait_id(by.cluster_id, topic, partition, self.offset, by.group, self.timestamp_ms)
        return self._wait_id

    wait_id = property(find_wait_id)

    @property
    def size(self) -> int:
        """Key, value and headers, bytes."""
        original = self.consumed.original
        size = (len(original.key) if original.key else 0) + (len(original.value) if original.value else 0)
        if original.headers:
            size += sum(len(name) + (len(content) if content else 0) for name, content in original.headers)
        return size


def take(message: Message, place: TopicPartition, by: Consumer) -> tuple[Taken, PermanentError | None]:
    """Decode a polled message.

    Args:
        message: without an error.
        place: where it was polled; the message would make new objects of it at each call.
        by: who consumes.

    Returns:
        The record, and why it can't be registered as it is, if so. It has no headers then: dead-letter it as
        `malformed`, since what is registered must come out as it went in.
    """
    topic, partition = place
    offset = message.offset()
    kind, timestamp_ms = message.timestamp()
    timestamp_type = TIMESTAMP_TYPES[kind]
    if timestamp_type == "none":
        timestamp_ms = -1
    headers: Headers | None = None
    unreadable = None
    try:
        headers = headers_of(message)
    except UNREADABLE as error:
        unreadable = PermanentError(
            "a header's name isn't UTF-8, so the client can't read the headers; this dead letter has key and value "
            f"only. Read the record itself at {topic}[{partition}] offset {offset} while it is there"
        )
        unreadable.__cause__ = error
    taken = consumed(
        topic, partition, offset, timestamp_ms, timestamp_type, message.key(), message.value(), headers, by.group
    )
    return Taken(by, place, offset, timestamp_ms, taken), unreadable
