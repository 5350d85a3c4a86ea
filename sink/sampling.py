"""A look at the records that come next, to know how large they are before a batch of them is asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Assignment

from sink.position import TopicPartition
from wait_registry.kafka.clients import consumer_config
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.settings.kafka import KafkaSettings

SAMPLE_RECORDS = 2_000
SAMPLE_TIMEOUT_S = 3.0


class Sample(NamedTuple):
    """The records that were looked at and their bytes; ``whole`` when they are all that was left to read."""

    records: int
    nbytes: int
    whole: bool


def sample_sizes(
    kafka: KafkaSettings,
    offsets: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    harmless: int,
    max_bytes: int,
) -> Sample:
    """Look at the records that come next.

    Args:
        kafka: the cluster.
        offsets: where the reading begins.
        ends: up to where there is something to read.
        harmless: so many records are no burden whatever their size: nobody looks.
        max_bytes: more is not looked at.

    Returns:
        What was seen; no records when none came in time.
    """
    behind = {name: ends[name] - offset for name, offset in offsets.items() if ends[name] > offset}
    if sum(behind.values()) <= harmless:
        return Sample(0, 0, whole=True)
    own = {
        "group.id": "waitreg-sink-sample",
        "queued.min.messages": 500,
        "queued.max.messages.kbytes": 16_384,
        # What a broker sends within this may be many times as large when it is read.
        "fetch.message.max.bytes": 131_072,
        "enable.partition.eof": True,
    }
    consumer = Consumer(consumer_config(kafka, **own))
    try:
        consumer.assign([Assignment(name.topic, name.partition, offsets[name]) for name in behind])
        return _read(consumer, len(behind), max_bytes)
    finally:
        consumer.close()


def _read(consumer: Consumer, partitions: int, max_bytes: int) -> Sample:
    records = nbytes = 0
    ended: set[tuple[str | None, int | None]] = set()
    deadline = time.monotonic() + SAMPLE_TIMEOUT_S
    while records < SAMPLE_RECORDS and nbytes < max_bytes and time.monotonic() < deadline:
        for message in consumer.consume(50, 0.02):
            error = message.error()
            if error is None:
                records += 1
                nbytes += len(message.key() or b"") + len(message.value() or b"")
                nbytes += _header_bytes(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add((message.topic(), message.partition()))
        if len(ended) == partitions:
            return Sample(records, nbytes, whole=True)
    return Sample(records, nbytes, whole=False)


def _header_bytes(message: Message) -> int:
    try:
        headers = headers_of(message) or ()
    except UNREADABLE:  # Spark reads it all the same; here only an estimate lacks a few bytes
        return 0
    return sum(len(name) + len(value or b"") for name, value in headers)
