"""A polled record as the shell knows it: decoded, and where its registration is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from confluent_kafka import Message

from processor.intake.subscription import SubscribedTopic
from processor.protocol.events import Polled
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.records.consumed import Consumed, consumed, idempotency_key, may_end_with_lineage
from wait_registry.records.headers import Headers
from wait_registry.records.original import TIMESTAMP_TYPES, Original, Source, TimestampType
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_id import wait_id
from wait_registry.telemetry.tracing import RecordTrace

log = logging.getLogger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Consumer(NamedTuple):
    """Who consumes: what wait IDs need, and whether the broker counts deliveries, as it does for a share group."""

    cluster_id: str
    group: str
    shares: bool = False


class Taken(Record):
    """One delivery of a record, which the handler gets as it is.

    One object has all of it, since most records are registered nowhere: the first delivery, and what the processor
    notes about this one.

    Attributes:
        place, polled_offset, polled_ms: where it was polled now, and its timestamp there.
        source: the same if that isn't where it was delivered first.
        wait_partition, wait_offset: of its registration, -1 and None before it has one; a client may report an
            acknowledgment without an offset.
        sent_ms, acknowledged_ms: when its wait record was sent and acknowledged, by this host's clock.
        expires_at_ms: when its registration expires.
        max_deliveries: as its lineage says; None if it has none.
        named_key: the idempotency key that its lineage names; None if it names none.
    """

    __slots__ = (
        "_cluster_id",
        "acknowledged_ms",
        "expires_at_ms",
        "max_deliveries",
        "named_key",
        "place",
        "polled_ms",
        "polled_offset",
        "sent_ms",
        "source",
        "trace",
        "wait_offset",
        "wait_partition",
    )

    def __init__(
        self,
        by: Consumer,
        place: TopicPartition,
        offset: int,
        timestamp_ms: int,
        timestamp_type: TimestampType,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        # All slots are set here: a call of the base class's own method would cost as much as all of this.
        self._topic, self._partition = self.place = place
        self._offset = self.polled_offset = offset
        self._timestamp = self.polled_ms = timestamp_ms
        self._timestamp_type = timestamp_type
        self._key = key
        self._value = value
        self._headers = headers
        self._delivery = 1
        self._cluster_id, self._group, _ = by
        self._wait_id = ""
        self.source: Source | None = None
        self.wait_partition = -1
        self.wait_offset: int | None = None
        self.sent_ms = 0
        self.acknowledged_ms = 0
        self.expires_at_ms: int | None = None
        self.max_deliveries: int | None = None
        self.named_key: str | None = None
        self.trace: RecordTrace | None = None

    def delivered_before(self, by_lineage: Consumed) -> None:
        """Note the first delivery, as the lineage block in the record's headers describes it."""
        original, self.source, self._delivery, self.max_deliveries, _, self.named_key = by_lineage
        self._topic, self._partition, self._offset, self._timestamp, self._timestamp_type, *_, self._headers = original

    def leased(self, deliveries: int) -> None:
        """Note how often a share group has delivered this record, this time included."""
        self._delivery += deliveries - 1

    @property
    def wait_id(self) -> str:
        """The key of the registration, which is computed when it is first needed."""
        if not self._wait_id:
            topic, partition = self.place
            self._wait_id = wait_id(self._cluster_id, topic, partition, self.polled_offset, self._group, self.polled_ms)
        return self._wait_id

    @property
    def idempotency_key(self) -> str:
        """The wait ID of the first delivery, or the key of the edit; computed each time it is needed."""
        if self.source is None:
            return self.wait_id
        return idempotency_key(self._cluster_id, self._group, self.original, self.named_key)

    @property
    def expires_at(self) -> datetime | None:
        """When the registration expires (UTC); None if there is none yet."""
        return None if self.expires_at_ms is None else _EPOCH + timedelta(milliseconds=self.expires_at_ms)

    @property
    def original(self) -> Original:
        """The record of the first delivery."""
        place = (self._topic, self._partition, self._offset, self._timestamp, self._timestamp_type)
        # As `Original` makes itself, without its constructor in Python, which takes as long again.
        return tuple.__new__(Original, (*place, self._key, self._value, self._headers))

    @property
    def registered_at(self) -> tuple[int | None, int | None]:
        """Partition and offset of its registration; both None without one, and while its place isn't known."""
        return (None, None) if self.wait_offset is None else (self.wait_partition, self.wait_offset)


def polled(messages: Sequence[Message], place: TopicPartition, by: Consumer, topic: SubscribedTopic) -> Polled:
    """Decode the messages of one poll and one partition.

    A record that can't be registered as it is has no headers here: what is registered must come out as it went in.

    Args:
        messages: without an error, in order.
        place: where they were polled; a message would make new objects of it at each call.
        by: who consumes.
        topic: where they were polled.
    """
    shares = by.shares
    foreign: list[int] = []
    offsets: list[int] = []
    records: list[Taken] = []
    sizes: list[int] = []
    malformed: dict[int, BaseException] = {}
    for message in messages:
        offset = message.offset()
        kind, timestamp_ms = message.timestamp()
        headers: Headers | None = None
        try:
            headers = headers_of(message)
        except UNREADABLE as error:
            malformed[offset] = _unreadable(place, offset, error)
        if not kind:
            timestamp_ms = -1
        timestamp_type, key, value = TIMESTAMP_TYPES[kind], message.key(), message.value()
        taken = Taken(by, place, offset, timestamp_ms, timestamp_type, key, value, tuple(headers) if headers else ())
        if headers and may_end_with_lineage(headers):
            seen = (*place, offset, timestamp_ms, timestamp_type, key, value, headers)
            by_lineage = consumed(*seen, by.group, topic.input_topic, topic.redelivered_to_origin)
            if by_lineage.foreign:
                log.warning("passed over: another group's record in %s[%d] at offset %d", *place, offset)
                foreign.append(offset)
            elif by_lineage.source is not None:
                taken.delivered_before(by_lineage)
        if shares and (deliveries := message.delivery_count()):
            taken.leased(deliveries)
        size = (len(key) if key else 0) + (len(value) if value else 0)
        if headers:
            size += sum(len(name) + (len(content) if content else 0) for name, content in headers)
        offsets.append(offset)
        records.append(taken)
        sizes.append(size)
    timestamps_ms = [taken.polled_ms for taken in records] if topic.delay_s else ()
    return Polled(place, offsets, records, sizes, malformed, foreign, timestamps_ms)


def _unreadable(place: TopicPartition, offset: int, cause: BaseException) -> PermanentError:
    error = PermanentError(
        "a header's name isn't UTF-8, so the client can't read the headers; this dead letter has key and value "
        f"only. Read the record itself at {place[0]}[{place[1]}] offset {offset} while it is there"
    )
    error.__cause__ = cause
    return error
