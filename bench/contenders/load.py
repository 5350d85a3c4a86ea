"""Records to consume: a topic filled beforehand, the same at every round, or a steady trickle while somebody reads.

A record has a key and a value of a given size (see `payload`): digits and JSON-like text drawn from a few thousand
pieces, filled up with one letter, so that it compresses well; or, where large values are measured, digits drawn at
random that hardly compress, as the sink's. Its producer's batches hold 500 records at most, lz4.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.contenders.payload import HEAD_BYTES, value_of
from bench.contenders.wait_log import pool_piece
from wait_registry.kafka.clients import admin
from wait_registry.kafka.requests import answer, persistently
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
    """So many calls of a hundred take so long."""

    percent: int
    call_ms: int


Mixture = tuple[Share, ...]
AT_ONCE: Final[Mixture] = (Share(100, 0),)


@cache
def call_lengths(mixture: Mixture) -> tuple[int, ...]:
    """Return how long calls take, ms: 10,000 of them in exact shares, shuffled, the same at every time."""
    lengths = [share.call_ms for share in mixture for _ in range(100 * share.percent)]
    Random(SEED).shuffle(lengths)
    return tuple(lengths)


def mean_call_s(mixture: Mixture) -> float:
    """Return what a call of the mixture takes in the mean, s."""
    return sum(share.percent * share.call_ms for share in mixture) / 100 / 1000


@cache
def fillers(value_bytes: int) -> tuple[bytes, ...]:
    """Return what fills values up to their size."""
    random, room = Random(SEED), value_bytes - HEAD_BYTES
    return tuple(_filler(random, room) for _ in range(FILLERS))


def fill(
    kafka: str,
    topic: str,
    records: int,
    mixture: Mixture = AT_ONCE,
    value_bytes: int = VALUE_BYTES,
    *,
    compressible: bool = True,
) -> None:
    """Have a topic hold at least so many records, the same wherever they are made; what is missing is added."""
    client = create(kafka, topic)
    lengths, sent_ns = call_lengths(mixture), time.time_ns()
    parts = fillers(value_bytes) if compressible else ()
    producer = _producer(kafka, linger_ms=20)
    for index in range(_held(client, topic), records):
        part = parts[index % FILLERS] if parts else pool_piece(index, value_bytes - HEAD_BYTES)
        value = value_of(lengths[index % len(lengths)], sent_ns, part)
        _send(producer, topic, index, value)
    _finish(producer)
    if (held := _held(client, topic)) < records:
        raise OSError(f"{topic} holds {held} records of {records}: the broker has refused some")


def create(kafka: str, topic: str) -> AdminClient:
    """Make an input topic unless it is there, and return the client that did."""
    client = admin(KafkaSettings(bootstrap_servers=kafka))
    if topic not in client.list_topics(timeout=ANSWER_S).topics:
        client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(ANSWER_S)
        await_leaders(client, [topic])
    return client


def trickle(kafka: str, topic: str, per_s: float, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
    """Publish evenly spaced records, each with the time at which it was handed to the client, and without lingering."""
    producer, parts, began_s = _producer(kafka, linger_ms=0), fillers(VALUE_BYTES), now()
    for index in range(round(per_s * seconds)):
        while (ahead_s := began_s + index / per_s - now()) > 0:
            producer.poll(0)
            time.sleep(ahead_s)
        _send(producer, topic, index, value_of(0, time.time_ns(), parts[index % FILLERS]))
    _finish(producer)


def _producer(kafka: str, linger_ms: float) -> Producer:
    return Producer(
        {
            "bootstrap.servers": kafka,
            "compression.type": "lz4",
            "linger.ms": linger_ms,
            "batch.num.messages": BATCH_RECORDS,
            "enable.idempotence": True,
        }
    )


def _send(producer: Producer, topic: str, index: int, value: bytes) -> None:
    key, partition = b"customer-%06d" % (index % 100_000), index % PARTITIONS
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.1)
            continue
        break
    if index % SERVE_EVERY == 0:
        producer.poll(0)


def _finish(producer: Producer) -> None:
    if left := producer.flush(ANSWER_S * 4):
        raise TimeoutError(f"the broker has not taken {left} records")


def _held(client: AdminClient, topic: str) -> int:
    """Return how many records a topic that only `fill` writes to holds."""
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(PARTITIONS)}

    def ends() -> int:
        futures = client.list_offsets(asked).values()
        return sum(answer(client, future, f"asking where {topic} ends").offset for future in futures)

    return persistently(client, ends)


def _filler(random: Random, room: int) -> bytes:
    city = random.choice(("Rotterdam", "Leeds", "Lyon", "Sao Paulo", "Osaka"))
    text = (
        f'{{"order":{random.randrange(10**6)},"customer":"customer-{random.randrange(10**6):06d}","city":"{city}",'
        f'"cents":{random.randrange(99, 49_900)},"token":"{random.randbytes(16).hex()}","note":"'
    )
    return text.encode().ljust(room - 2, b"x")[: room - 2] + b'"}' if room > 2 else b"x" * max(0, room)


def main(argv: Sequence[str] | None = None) -> None:
    """Publish a trickle, for a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True, help="bootstrap servers")
    parser.add_argument("--topic", required=True, help="an existing topic")
    parser.add_argument("--per-s", type=float, required=True, help="records a second")
    parser.add_argument("--seconds", type=float, required=True, help="how long, s")
    given = parser.parse_args(argv)
    trickle(given.kafka, given.topic, given.per_s, given.seconds)


if __name__ == "__main__":
    main()
