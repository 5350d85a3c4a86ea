"""Reads records of partitions from offsets on, by a client that belongs to no service; transaction markers are none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.positions import Isolation
from wait_registry.settings.kafka import KafkaSettings

POLL_S = 0.2
# What a client has at hand: for one record of each partition, and for many.
FEW_KB = 1024
MANY_KB = 4096


def first_records(
    kafka: KafkaSettings,
    group: str,
    topic: str,
    offsets: Mapping[int, int],
    isolation: Isolation = "read_committed",
) -> dict[int, Message | None]:
    """Read one record from each offset on.

    Args:
        kafka: the cluster.
        group: named to the broker, since the client requires one; it is never joined, and nothing is committed.
        topic: what to read.
        offsets: where to read, by partition.
        isolation: whether records of open transactions are read.

    Returns:
        By partition its record, None if it has none up to its end. A partition that doesn't answer within
        ``kafka.request_timeout_s`` is missing.

    Raises:
        ConfigurationError: no permission (READ on the topic, DESCRIBE on the group).
    """
    if not offsets:
        return {}
    found: dict[int, Message | None] = {}
    own = {"isolation.level": isolation, "queued.max.messages.kbytes": FEW_KB}
    with _reader(kafka, group, topic, offsets, own) as consumer:
        for number, message in _polled(consumer, topic, kafka.request_timeout_s):
            if number not in found:
                found[number] = message
                consumer.incremental_unassign([TopicPartition(topic, number)])
            if found.keys() == offsets.keys():
                break
    return found


def last_records(
    kafka: KafkaSettings, group: str, topic: str, offsets: Mapping[int, int], limit_s: float
) -> Iterator[Message]:
    """Read each partition from its offset, or from its first one after it, to its end.

    Args:
        kafka, group, topic: as of `first_records`.
        offsets: where to begin, by partition.
        limit_s: how long to read at most, s; records that remain unread are skipped.

    Raises:
        ConfigurationError: no permission (READ on the topic, DESCRIBE on the group).
    """
    if not offsets:
        return
    unread = set(offsets)
    own = {"isolation.level": "read_committed", "queued.max.messages.kbytes": MANY_KB}
    with _reader(kafka, group, topic, offsets, own) as consumer:
        for number, message in _polled(consumer, topic, limit_s):
            if message is not None:
                yield message
                continue
            unread.discard(number)
            if not unread:
                return


@contextmanager
def _reader(
    kafka: KafkaSettings, group: str, topic: str, offsets: Mapping[int, int], own: Mapping[str, object]
) -> Iterator[Consumer]:
    common = {"group.id": group, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    with usable_settings():
        reader = Consumer(consumer_config(kafka, **common, **own))
    with closing(reader) as consumer:
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])
        yield consumer


def _polled(consumer: Consumer, topic: str, limit_s: float) -> Iterator[tuple[int, Message | None]]:
    """Yield the number of a partition and its next record, or None at its end, for a limited time, s."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        error, number = message.error(), int(message.partition() or 0)
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise kafka_failure(error, f"reading {topic}-{number}")
        yield number, message if error is None else None
