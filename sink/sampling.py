"""A look at the records that come next, to know how large they are before a batch of them is asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Assignment

from sink.position import TopicPartition
from wait_registry.kafka.clients import consumer_config
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.settings.kafka import KafkaSettings

# Fewer records than these are no burden whatever their size: nobody looks.
WORTH_A_LOOK = 2_000
SAMPLE_RECORDS = 500
SAMPLE_TIMEOUT_S = 3.0


def sample_sizes(
    kafka: KafkaSettings, offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> tuple[int, int]:
    """Return how many records were looked at and their bytes; (0, 0) when few are left to read or none came in time."""
    behind = {name: ends[name] - offset for name, offset in offsets.items() if ends[name] > offset}
    if sum(behind.values()) < WORTH_A_LOOK:
        return 0, 0
    consumer = Consumer(consumer_config(kafka, **{"group.id": "waitreg-sink-sample", "queued.min.messages": 1}))
    try:
        consumer.assign([Assignment(name.topic, name.partition, offsets[name]) for name in behind])
        return _read(consumer)
    finally:
        consumer.close()


def _read(consumer: Consumer) -> tuple[int, int]:
    records = nbytes = 0
    deadline = time.monotonic() + SAMPLE_TIMEOUT_S
    while records < SAMPLE_RECORDS and time.monotonic() < deadline:
        for message in consumer.consume(SAMPLE_RECORDS, 0.1):
            if message.error() is None:
                records += 1
                nbytes += len(message.key() or b"") + len(message.value() or b"")
                nbytes += _header_bytes(message)
    return records, nbytes


def _header_bytes(message: Message) -> int:
    try:
        headers = headers_of(message) or ()
    except UNREADABLE:  # Spark reads it all the same; here only an estimate lacks a few bytes
        return 0
    return sum(len(name) + len(value or b"") for name, value in headers)
