"""The first record that each partition has from an offset on; a transaction's marker is none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from wait_registry.kafka.clients import consumer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.positions import Isolation
from wait_registry.settings.kafka import KafkaSettings

POLL_S = 0.2


@contextmanager
def reader(
    kafka: KafkaSettings, group: str, topic: str, offsets: Mapping[int, int], isolation: Isolation, fetched_kb: int
) -> Iterator[Consumer]:
    """Yield a client that reads from offsets on and reports the ends; it has as many kB at hand as given.

    Other arguments as of `first_records`.
    """
    own = {
        "group.id": group,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": fetched_kb,
        "isolation.level": isolation,
    }
    with closing(Consumer(consumer_config(kafka, **own))) as consumer:
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])
        yield consumer


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
    found: dict[int, Message | None] = {}
    deadline = time.monotonic() + kafka.request_timeout_s
    with reader(kafka, group, topic, offsets, isolation, 1024) as consumer:
        while found.keys() != offsets.keys() and time.monotonic() < deadline:
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error, number = message.error(), int(message.partition() or 0)
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise kafka_failure(error, f"reading {topic}-{number}")
            if number not in found:
                found[number] = message if error is None else None
                consumer.incremental_unassign([TopicPartition(topic, number)])
    return found
