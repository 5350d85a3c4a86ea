"""How much room a registered and resolved record takes in the wait topic: run `python bench/wait_topic_disk.py`.

Writes real wait records and tombstones to a real broker, once in full producer batches and once one at a time (which
compresses worst), and prints bytes per record as they stand on disk: with everything, after compaction has taken the
wait records, and after it has taken the tombstones too. Ends its broker by itself; about ten minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from wait_registry.demo.orders import ORDERS, order
from wait_registry.kafka.clients import producer_config
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import free_ports
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecordEncoder
from wait_registry.settings.kafka import KafkaSettings

TOMBSTONES_STAY_MS: Final = 120_000
DEADLINE_S: Final = 400.0
TIME_MS: Final = 1_795_227_600_123
CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"
EAGER_CLEANER: Final = {"log.cleaner.backoff.ms": "500", "log.initial.task.delay.ms": "1000"}
TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "segment.ms": "3600000",
    "delete.retention.ms": str(TOMBSTONES_STAY_MS),
}
# Set when all is written and measured: nothing is compacted before.
EAGER_TOPIC: Final = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0", "max.compaction.lag.ms": "1000"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What is registered, how many, and whether each record is sent alone or in full producer batches."""

    name: str
    value: Callable[[int], bytes | None]
    records: int
    alone: bool


def orders(index: int) -> bytes | None:
    """Return the value of one of `waitreg load`'s orders: mostly JSON."""
    return order(1, index, ORDERS).value


def noise(index: int) -> bytes:
    """Return 1000 bytes that don't compress."""
    return Random(index).randbytes(1000)


SHAPES: Final = (
    Shape("orders, full batches", orders, 20_000, alone=False),
    Shape("orders, one at a time", orders, 2_000, alone=True),
    Shape("1000 B of noise, full batches", noise, 20_000, alone=False),
    Shape("1000 B of noise, one at a time", noise, 2_000, alone=True),
)


class WaitTopic:
    """One partition with an eager cleaner, and its folder on disk."""

    def __init__(self, broker: EmbeddedBroker, name: str) -> None:
        self._bootstrap = broker.bootstrap_servers
        self._name = name
        self._folder = broker.directory / "data" / f"{name}-0"
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap})
        self._admin.create_topics([NewTopic(name, 1, 1, config=dict(TOPIC_CONFIG))])[name].result(30)
        settings = KafkaSettings(bootstrap_servers=self._bootstrap)
        self._producer = Producer(producer_config(settings, **{"linger.ms": 1, "batch.size": 1_000_000}))

    def bytes(self) -> int:
        """Return what all segments take, indexes left out (they are a few per mille, and preallocated)."""
        return sum(file.stat().st_size for file in self._folder.glob("*.log"))

    def write(self, shape: Shape) -> int:
        """Register and resolve the records; return the bytes of their values."""
        encoder = WaitRecordEncoder("billing", "host-1-20261121T022000.000Z", "waitreg.dlq", "dlq", 3)
        total, keys = 0, []
        for index in range(shape.records):
            value, made = shape.value(index), order(1, index, ORDERS)
            headers = tuple(made.headers)
            original = Original("orders", 3, index, TIME_MS + index, "create", made.key, value, headers)
            key = wait_id(CLUSTER, "orders", 3, index, "billing", TIME_MS + index)
            keys.append(key)
            total += len(value or b"")
            self._send(value or b"", key, encoder.headers(original, key, TIME_MS + 600_000), index, shape.alone)
        for index, key in enumerate(keys):
            self._send(None, key, tombstone_headers(Outcome.DONE), index, shape.alone)
        self._producer.flush()
        return total

    def _send(
        self, value: bytes | None, key: str, headers: list[tuple[str, bytes | None]], index: int, alone: bool
    ) -> None:
        self._producer.produce(self._name, value, key, headers=headers)
        if alone:
            self._producer.flush()
        elif index % 10_000 == 0:
            self._producer.poll(0)

    def let_compact(self) -> None:
        """Have the cleaner take it as soon as it can."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in EAGER_TOPIC.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self._name, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(30)

    def roll(self) -> None:
        """Write one record more, late enough that it begins a new segment: only closed ones are compacted."""
        time.sleep(1.1)
        self._producer.produce(self._name, b"rolls the segment", "roll")
        self._producer.flush()

    def left(self) -> tuple[int, int]:
        """Return how many values and how many tombstones can be read."""
        values = tombstones = 0
        for value in self._read():
            if value is None:
                tombstones += 1
            else:
                values += 1
        return values, tombstones

    def _read(self) -> Iterator[bytes | None]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "bench",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(self._name, 0, OFFSET_BEGINNING)])
        try:
            while True:
                for message in consumer.consume(5000, 0.1):
                    error = message.error()
                    if error is None:
                        yield message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return
        finally:
            consumer.close()


def measure(topic: WaitTopic, shape: Shape) -> str:
    """Return the line of one shape."""
    values = topic.write(shape)
    whole = topic.bytes()
    topic.let_compact()
    topic.roll()
    _until(lambda: topic.left()[0] <= 2, "compaction of the wait records", topic)
    tombstones = topic.left()[1]
    resolved = topic.bytes()
    assert tombstones == shape.records, f"only {tombstones} tombstones are left: the cleaner was too slow, run it again"
    _until(lambda: topic.left()[1] == 0, "compaction of the tombstones", topic)
    empty = topic.bytes()
    per = [round(size / shape.records) for size in (values, whole, resolved, empty)]
    return f"{shape.name:<32}{per[0]:>8}{per[1]:>12}{per[2]:>12}{per[3]:>12}"


def _until(done: Callable[[], bool], what: str, topic: WaitTopic) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took more than {DEADLINE_S:g} s")
        topic.roll()


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="waitreg-bench-") as folder:
        client, controller = free_ports(2)
        broker = EmbeddedBroker(Path(folder) / "broker", (client, controller), properties=EAGER_CLEANER, temporary=True)
        broker.start()
        try:
            print(f"{'bytes per record':<32}{'value':>8}{'both':>12}{'tombstone':>12}{'after':>12}")
            for number, shape in enumerate(SHAPES):
                print(f"{shape.name}: {number + 1} of {len(SHAPES)}, a few minutes", file=sys.stderr)
                print(measure(WaitTopic(broker, f"wait-{number}"), shape), flush=True)
        finally:
            broker.kill()


if __name__ == "__main__":
    main()
