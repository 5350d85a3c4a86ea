"""The records of a topic from some offsets to the ends of the partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, Message

from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.first_records import POLL_S, reader
from wait_registry.settings.kafka import KafkaSettings


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
    unread, deadline_s = set(offsets), time.monotonic() + limit_s
    if not offsets:
        return
    with reader(kafka, group, topic, offsets, "read_committed", 4096) as consumer:
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
