"""The records of a topic from some offsets to the ends of the partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from wait_registry.kafka.clients import consumer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.settings.kafka import KafkaSettings

POLL_S = 0.2


def last_records(
    kafka: KafkaSettings, group: str, topic: str, offsets: Mapping[int, int], limit_s: float
) -> Iterator[Message]:
    """Read each partition from its offset, or from its first one after it, to its end.

    Args:
        kafka: the cluster.
        group: named to the broker, since the client requires one; it is never joined, and nothing is committed.
        topic: what to read.
        offsets: where to begin, by partition.
        limit_s: how long to read at most, s; records that remain unread are skipped.

    Raises:
        ConfigurationError: no permission (READ on the topic, DESCRIBE on the group).
    """
    own = {
        "group.id": group,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": 4096,
    }
    unread, deadline_s = set(offsets), time.monotonic() + limit_s
    if not offsets:
        return
    with closing(Consumer(consumer_config(kafka, **own))) as consumer:
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])
        while unread and time.monotonic() < deadline_s:
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(int(message.partition() or 0))
            else:
                raise kafka_failure(error, f"reading {topic}-{message.partition()}")
