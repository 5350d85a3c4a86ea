"""Producing and reading whole topics with clients that share nothing with the product's."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Literal, TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.support.waiting import PATIENCE_S

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]
SILENT_S = 60.0
UNREADABLE_NAME = "(a name that isn't UTF-8)"
UNREADABLE: Headers = ((UNREADABLE_NAME, None),)
_headers_of = methodcaller("headers")
# Of a topic that has just been made: the client asks again by itself.
PASSING = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "create", TIMESTAMP_LOG_APPEND_TIME: "append"}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to produce; no partition lets the key decide, no timestamp takes the clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ReadRecord:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def place(self) -> tuple[str, int, int]:
        return (self.topic, self.partition, self.offset)

    @property
    def is_readable(self) -> bool:
        """Whether a client can read its headers: their names are UTF-8."""
        return self.headers != UNREADABLE

    def header(self, name: str) -> bytes | None:
        """Return the last header of that name; KeyError when there is none."""
        return dict(self.headers)[name]

    def text(self, name: str) -> str:
        """Return the last header of that name as text; KeyError when there is none."""
        value = self.header(name)
        assert value is not None, f"header {name} is null"
        return value.decode()


def produce(
    bootstrap: str, topic: str, records: Iterable[Outgoing | bytes], compression: str = "none"
) -> list[tuple[int, int]]:
    """Produce records in order and return the partition and offset of each.

    Compressed, a record may be far larger than the topic's max.message.bytes.

    Raises:
        KafkaException: one was refused.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.max.bytes": 100_000_000,
            "compression.type": compression,
        }
    )
    failed: list[KafkaError] = []
    places: dict[int, tuple[int, int]] = {}
    number = -1
    for number, record in enumerate(records):

        def delivered(error: KafkaError | None, message: Message, number: int = number) -> None:
            if error is not None:
                failed.append(error)
            else:
                places[number] = (message.partition(), message.offset())

        _send(producer, topic, record if isinstance(record, Outgoing) else Outgoing(record), delivered)
    if producer.flush(60) or failed:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))
    return [places[each] for each in range(number + 1)]


def _send(producer: Producer, topic: str, record: Outgoing, delivered: object) -> None:
    optional = {"partition": record.partition, "timestamp": record.timestamp_ms}
    given = {name: value for name, value in optional.items() if value is not None}
    headers = list(record.headers) or None
    while True:
        try:
            producer.produce(topic, record.value, record.key, headers=headers, on_delivery=delivered, **given)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def group_member(bootstrap: str, group: str, topics: Iterable[str], protocol: str = "consumer") -> Consumer:
    """Return a consumer that has subscribed and commits nothing; the caller closes it."""
    member = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "enable.auto.commit": False}
    )
    member.subscribe(list(topics))
    return member


def read_all(bootstrap: str, topic: str, isolation: Isolation = "read_committed") -> list[ReadRecord]:
    """Return what `read_each` yields, ordered by partition and offset."""
    return sorted(read_each(bootstrap, topic, isolation), key=lambda record: (record.partition, record.offset))


def read_each(bootstrap: str, topic: str, isolation: Isolation) -> Iterator[ReadRecord]:
    """Yield every record of a topic up to its end.

    Args:
        bootstrap: the broker's address.
        topic: the topic; it must exist.
        isolation: `read_committed` ends at the last stable offset, `read_uncommitted` at the high watermark.

    Raises:
        KafkaException: the broker refused, or sent no record for a minute.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 8_388_608,
        }
    )
    try:
        unread = set(consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
        assert unread, f"topic {topic} does not exist"
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in unread])
        since_s = time.monotonic()
        while unread:
            for message in consumer.consume(1000, 0.05):
                error = message.error()
                if error is None:
                    since_s = time.monotonic()
                    yield as_record(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                elif not error.retriable() and error.code() not in PASSING:
                    raise KafkaException(error)
            if time.monotonic() > since_s + SILENT_S:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    finally:
        consumer.close()


def as_record(message: Message) -> ReadRecord:
    kind, timestamp_ms = message.timestamp()
    return ReadRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp_ms,
        TIMESTAMP_TYPES.get(kind, "none"),
        message.key(),
        message.value(),
        _headers(message),
    )


def _headers(message: Message) -> Headers:
    # A name that isn't UTF-8: the plain call may hand out a list with a null pointer in it instead of raising.
    try:
        return tuple(_headers_of(message) or ())
    except (SystemError, UnicodeDecodeError):
        return UNREADABLE
