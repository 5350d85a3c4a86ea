"""A look at the records that come next, to know how large they are before a batch of them is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
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
    """What a batch of the next ``records`` would hold: so many ``nbytes``; ``whole`` when it is all that was left."""

    records: int
    nbytes: int
    whole: bool


@dataclass(slots=True)
class Seen:
    """The records that were looked at in one partition and their bytes; ``ended`` when nothing more was left in it."""

    records: int = 0
    nbytes: int = 0
    ended: bool = False


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
        max_bytes: beyond it, of each partition one record is looked at.

    Returns:
        `as_a_batch` of what was seen; no records when none came in time.
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
        # 1 s by default: so long a partition with enough in the queue isn't asked again.
        "fetch.queue.backoff.ms": 5,
        "enable.partition.eof": True,
    }
    consumer = Consumer(consumer_config(kafka, **own))
    try:
        consumer.assign([Assignment(name.topic, name.partition, offsets[name]) for name in behind])
        return as_a_batch(_read(consumer, behind, ends, max_bytes), behind, harmless)
    finally:
        consumer.close()


def as_a_batch(seen: Mapping[TopicPartition, Seen], behind: Mapping[TopicPartition, int], harmless: int) -> Sample:
    """Return what was seen as a batch would have it, which takes of each partition by the offsets left in it.

    A fetch is bounded in bytes and brings few of the large records, the batch brings them all: each partition's mean
    counts by what the partition has left, however many records it has shown. One that has shown none in time may hold
    records of any size, or none at all: of those ``records`` no more than ``harmless`` are its own.
    """
    left, shown = sum(behind.values()), {name: part for name, part in seen.items() if part.records}
    whole = all(part.ended for part in seen.values())
    if not shown:
        return Sample(0, 0, whole)
    weighed = sum(behind[name] * part.nbytes / part.records for name, part in shown.items())
    mean_bytes = weighed / sum(behind[name] for name in shown)
    records = sum(part.records for part in shown.values())
    unknown = sum(behind[name] for name, part in seen.items() if not part.records and not part.ended)
    if unknown:
        records = max(1, min(records, harmless * left // unknown))
    return Sample(records, round(records * mean_bytes), whole)


def _read(
    consumer: Consumer, behind: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], max_bytes: int
) -> dict[TopicPartition, Seen]:
    """Look at each partition until it has shown its share of the records, as a batch would take them."""
    left, seen = sum(behind.values()), {name: Seen() for name in behind}
    share = {name: math.ceil(SAMPLE_RECORDS * count / left) for name, count in behind.items()}
    awaited, deadline = set(behind), time.monotonic() + SAMPLE_TIMEOUT_S
    while awaited and time.monotonic() < deadline:
        for message in consumer.consume(50, 0.02):
            _count(message, seen, ends)
        enough = sum(part.nbytes for part in seen.values()) >= max_bytes
        done = {n for n in awaited if seen[n].ended or seen[n].records >= (1 if enough else share[n])}
        if done:
            # Otherwise its small records would go on filling the answers that large ones of others don't fit into.
            consumer.pause([Assignment(name.topic, name.partition) for name in done])
            awaited -= done
    return seen


def _count(message: Message, seen: Mapping[TopicPartition, Seen], ends: Mapping[TopicPartition, int]) -> None:
    topic, partition, offset, error = message.topic(), message.partition(), message.offset(), message.error()
    if topic is None or partition is None:
        return
    name = TopicPartition(topic, partition)
    if error is None:
        part = seen[name]
        part.records += 1
        part.nbytes += len(message.key() or b"") + len(message.value() or b"") + _header_bytes(message)
        part.ended = part.ended or (offset is not None and offset + 1 >= ends[name])
    elif error.code() == KafkaError._PARTITION_EOF:
        seen[name].ended = True


def _header_bytes(message: Message) -> int:
    try:
        headers = headers_of(message) or ()
    except UNREADABLE:  # Spark reads it all the same; here only an estimate lacks a few bytes
        return 0
    return sum(len(name) + len(value or b"") for name, value in headers)
