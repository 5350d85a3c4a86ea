"""A polled record as the loop knows it: decoded, and where its registration is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from processor.health.clock_watch import ClockWatch
from processor.intake.start_decision import Start
from processor.intake.subscription import SubscribedTopic
from processor.protocol.events import Assigned, Polled
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.records.consumed import consumed, idempotency_key, may_end_with_lineage
from wait_registry.records.headers import Headers
from wait_registry.records.original import TIMESTAMP_TYPES, Original, Source
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_id import wait_id
from wait_registry.telemetry.tracing import RecordTrace

log = logging.getLogger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class GroupIdentity(NamedTuple):
    """Who consumes, as wait IDs name it."""

    cluster_id: str
    group: str


class Delivery(Record):
    """One delivery of a record, which the handler gets as it is.

    One object has all of it, since most records are registered nowhere: the first delivery, and what the processor
    notes about this one.

    Attributes:
        place, polled_offset, polled_ms: where it was polled now, and its timestamp there.
        size: bytes of key, value and headers.
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
        "size",
        "source",
        "trace",
        "wait_offset",
        "wait_partition",
    )

    def __init__(self, by: GroupIdentity, place: TopicPartition, message: Message, headers: Headers) -> None:
        # All slots are set here: a call of the base class's own method would cost as much as all of this.
        self._topic, self._partition = self.place = place
        self._offset = self.polled_offset = message.offset()
        kind, timestamp_ms = message.timestamp()
        self._timestamp = self.polled_ms = timestamp_ms if kind else -1
        self._timestamp_type = TIMESTAMP_TYPES[kind]
        self._key = key = message.key()
        self._value = value = message.value()
        self._headers = headers
        self.size = (len(key) if key else 0) + (len(value) if value else 0)
        if headers:
            self.size += sum(len(name) + (len(content) if content else 0) for name, content in headers)
        self._delivery = 1
        self._cluster_id, self._group = by
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

    def read_lineage(self, headers: Headers, topic: SubscribedTopic) -> bool:
        """Note the first delivery, as the lineage block in the headers describes it, if they have one.

        Returns:
            False if the record is another group's.
        """
        polled = (*self.place, self.polled_offset, self.polled_ms, self._timestamp_type, self._key, self._value)
        by_lineage = consumed(*polled, headers, self._group, topic.input_topic, topic.redelivered_to_origin)
        if by_lineage.foreign:
            log.warning("passed over: another group's record in %s[%d] at offset %d", *self.place, self.polled_offset)
            return False
        if by_lineage.source is None:
            return True
        original, self.source, self._delivery, self.max_deliveries, _, self.named_key = by_lineage
        self._topic, self._partition, self._offset, self._timestamp, self._timestamp_type, *_, self._headers = original
        return True

    def leased(self, deliveries: int) -> None:
        """Note how often a share group has delivered this record, this time included."""
        self._delivery += deliveries - 1

    @staticmethod
    def register(records: Sequence[Delivery], partitions: Sequence[int], sent_ms: int, expires_at_ms: int) -> None:
        """Note that wait records are sent now; a second registration goes to the partition of the first."""
        for record, partition in zip(records, partitions, strict=True):
            if record.wait_partition < 0:
                record.wait_partition = partition
            record.sent_ms = sent_ms
            record.expires_at_ms = expires_at_ms

    @staticmethod
    def registered(records: Sequence[Delivery], offsets: Sequence[int | None], now_ms: int) -> None:
        """Note the offsets of acknowledged wait records, None if the client has none."""
        for record, offset in zip(records, offsets, strict=True):
            record.wait_offset = offset
            record.acknowledged_ms = now_ms

    def traced(self, trace: RecordTrace) -> None:
        """Note the record's trace."""
        self.trace = trace

    @property
    def wait_id(self) -> str:
        """The key of the registration, which is computed when it is first needed."""
        if not self._wait_id:
            place = (*self.place, self.polled_offset)
            self._wait_id = wait_id(self._cluster_id, place, self._group, self.polled_ms)
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


class Deliveries:
    """Decodes what a source polls, and describes its assignments.

    Args:
        by: who consumes.
        topics: the consumed topics, by name.
        clock_watch: gets the append times of polled records.
        counted: whether the broker counts deliveries, as it does for a share group.
    """

    def __init__(
        self, by: GroupIdentity, topics: Mapping[str, SubscribedTopic], clock_watch: ClockWatch, counted: bool = False
    ) -> None:
        self._by = by
        self._topics = topics
        self._clock_watch = clock_watch
        self._counted = counted
        self._with_own_times: set[str] = set()

    def assigned(self, start: Start) -> Assigned:
        """Return the event that a partition was assigned."""
        recorded, topic = start.recorded, self._topics[start.topic]
        bound, mode = (None, None) if recorded is None else (recorded.uncommitted_max, recorded.registration)
        return Assigned(start[:2], start.offset, bound, mode, start.end, topic.delay_s, topic.retries)

    def polled(self, messages: Mapping[TopicPartition, Sequence[Message]]) -> list[Polled]:
        """Decode the messages of one poll, by partition: each without an error, in order, at least one."""
        return [self._of_partition(place, run) for place, run in messages.items()]

    def _of_partition(self, place: TopicPartition, messages: Sequence[Message]) -> Polled:
        """Decode the messages of one partition.

        A record that can't be registered as it is has no headers here: what is registered must come out as it went in.
        """
        self._clock_watch.observe_polled(messages[-1].timestamp())
        topic, by, counted = self._topics[place[0]], self._by, self._counted
        if topic.retries:
            self._check_timestamps(topic, messages)
        offsets: list[int] = []
        records: list[Delivery] = []
        sizes: list[int] = []
        malformed: dict[int, BaseException] = {}
        foreign: list[int] = []
        for message in messages:
            headers: Headers = ()
            try:
                headers = tuple(headers_of(message) or ())
            except UNREADABLE as error:
                malformed[message.offset()] = _unreadable(place, message.offset(), error)
            record = Delivery(by, place, message, headers)
            if headers and may_end_with_lineage(headers) and not record.read_lineage(headers, topic):
                foreign.append(record.polled_offset)
            if counted and (deliveries := message.delivery_count()):
                record.leased(deliveries)
            offsets.append(record.polled_offset)
            records.append(record)
            sizes.append(record.size)
        timestamps_ms = [each.polled_ms for each in records] if topic.delay_s else ()
        return Polled(place, offsets, records, sizes, malformed, foreign, timestamps_ms)

    def _check_timestamps(self, topic: SubscribedTopic, messages: Sequence[Message]) -> None:
        """Warn once of a retry topic whose timestamp type was changed: at the start it was right."""
        if topic.name in self._with_own_times or all(each.timestamp()[0] != TIMESTAMP_CREATE_TIME for each in messages):
            return
        self._with_own_times.add(topic.name)
        log.warning(
            "records of the retry topic %s have timestamps of their producers instead of the broker's. Each waits for "
            "%g s after its timestamp or after it was seen in the log, whichever is earlier. To fix it: "
            "`waitreg topics check`",
            topic.name,
            topic.delay_s,
        )


def _unreadable(place: TopicPartition, offset: int, cause: BaseException) -> PermanentError:
    error = PermanentError(
        "a header's name isn't UTF-8, so the client can't read the headers; this dead letter has key and value "
        f"only. Read the record itself at {place[0]}[{place[1]}] offset {offset} while it is there"
    )
    error.__cause__ = cause
    return error
