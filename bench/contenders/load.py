"""Records to consume: a topic filled beforehand, the same in every round, or a steady trickle.

A value (see `flow_program`) is filled up with JSON-like text drawn from a few thousand pieces, which compresses well.
The producer's batches hold 500 records at most, lz4.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.contenders.flow_program import HEAD_BYTES, value_of
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.topics import await_leaders
from wait_registry.settings.kafka import KafkaSettings

PARTITIONS: Final = 4
VALUE_BYTES: Final = 200
BATCH_RECORDS: Final = 500
FILLERS: Final = 4096
SEED: Final = 7
ANSWER_S: Final = 30.0
SERVE_EVERY: Final = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the calls, and how long they take."""

    percent: int
    call_ms: int


Mixture = tuple[Share, ...]
AT_ONCE: Final[Mixture] = (Share(100, 0),)
# Every tenth call is slow.
SLOW: Final[Mixture] = (Share(10, 1000), Share(90, 200))


@cache
def call_lengths(mixture: Mixture) -> tuple[int, ...]:
    """Return how long calls take, ms: 10,000 of them in exact shares, shuffled, the same every time."""
    lengths = [share.call_ms for share in mixture for _ in range(100 * share.percent)]
    Random(SEED).shuffle(lengths)
    return tuple(lengths)


def mean_call_s(mixture: Mixture) -> float:
    """Return the mean duration of a call, s."""
    return sum(share.percent * share.call_ms for share in mixture) / 100 / 1000


def fill(kafka: str, topic: str, records: int, mixture: Mixture = AT_ONCE) -> None:
    """Have a topic hold at least this number of records."""
    client = create(kafka, topic)
    lengths, sent_ns, fillers = call_lengths(mixture), time.time_ns(), _fillers()
    producer = _producer(kafka, linger_ms=20)
    for index in range(held(client, topic, PARTITIONS), records):
        _send(producer, topic, index, value_of(lengths[index % len(lengths)], sent_ns, fillers[index % FILLERS]))
    _finish(producer)
    if (found := held(client, topic, PARTITIONS)) < records:
        raise OSError(f"{topic} holds {found} records of {records}: the broker has refused some")


def create(kafka: str, topic: str) -> AdminClient:
    """Make an input topic unless it is there, and return the client that did."""
    client = admin(KafkaSettings(bootstrap_servers=kafka))
    if topic not in client.list_topics(timeout=ANSWER_S).topics:
        client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(ANSWER_S)
        await_leaders(client, [topic])
    return client


def delete(kafka: str, *topics: str) -> None:
    """Delete topics and wait for the answer."""
    client = admin(KafkaSettings(bootstrap_servers=kafka))
    for deleted in client.delete_topics(list(topics)).values():
        deleted.exception(ANSWER_S)


def held(client: AdminClient, topic: str, partitions: int) -> int:
    """Return how many records a topic holds that nothing was removed from."""
    return sum(end_offsets(client, topic, range(partitions)).values())


def committed(group: Consumer, topic: str, partitions: int) -> int:
    """Return how many records a group has committed over all partitions; the consumer never joins it."""
    asked = [TopicPartition(topic, number) for number in range(partitions)]
    return sum(max(0, place.offset) for place in group.committed(asked, timeout=ANSWER_S))


def trickle(kafka: str, topic: str, per_s: float, seconds: float) -> None:
    """Publish evenly spaced records, each with the time at which it was handed to the client, and without lingering."""
    producer, parts, began_s = _producer(kafka, linger_ms=0), _fillers(), time.monotonic()
    for index in range(round(per_s * seconds)):
        while (ahead_s := began_s + index / per_s - time.monotonic()) > 0:
            producer.poll(0)
            time.sleep(ahead_s)
        _send(producer, topic, index, value_of(0, time.time_ns(), parts[index % FILLERS]))
    _finish(producer)


def _producer(kafka: str, linger_ms: float) -> Producer:
    batches = {"linger.ms": linger_ms, "batch.num.messages": BATCH_RECORDS, "compression.type": "lz4"}
    return Producer({"bootstrap.servers": kafka, "enable.idempotence": True, **batches})


def _send(producer: Producer, topic: str, index: int, value: bytes) -> None:
    key, partition = b"customer-%06d" % (index % 100_000), index % PARTITIONS
    while True:
        try:
            producer.produce(topic, value, key, partition)
            break
        except BufferError:
            producer.poll(0.1)
    if index % SERVE_EVERY == 0:
        producer.poll(0)


def _finish(producer: Producer) -> None:
    if left := producer.flush(ANSWER_S * 4):
        raise TimeoutError(f"the broker has not taken {left} records")


@cache
def _fillers() -> tuple[bytes, ...]:
    random, room = Random(SEED), VALUE_BYTES - HEAD_BYTES
    return tuple(_filler(random, room) for _ in range(FILLERS))


def _filler(random: Random, room: int) -> bytes:
    city = random.choice(("Rotterdam", "Leeds", "Lyon", "Sao Paulo", "Osaka"))
    text = (
        f'{{"order":{random.randrange(10**6)},"customer":"customer-{random.randrange(10**6):06d}","city":"{city}",'
        f'"cents":{random.randrange(99, 49_900)},"token":"{random.randbytes(16).hex()}","note":"'
    )
    return text.encode().ljust(room - 2, b"x")[: room - 2] + b'"}'


if __name__ == "__main__":
    broker, name, rate, length = sys.argv[1:]
    trickle(broker, name, float(rate), float(length))
