"""What a sweep beside a Connect sink reads: run `python bench/tail_reading.py --kafka HOST:PORT` (`waitreg stack up`).

Registers and resolves records in one partition, as a processor does, and times the sweeper's tail over all of it: that
is what stands between the oldest due registration and the log's end. Prints records/s, CPU a record, memory an id.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import uuid
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from sweeper.tail import Tail
from sweeper.tail_reader import TailReader
from wait_registry.clock import SystemClock
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.root import Settings
from wait_registry.settings.topics import WaitTopicSettings

HEADERS: Final = [("ORIGINAL_HEADERS", b"[]"), ("WAIT_GROUP", b"shop"), ("PADDING", b"x" * 600)]
CONFIG: Final = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}


def main() -> None:
    """Run as the module's docstring says."""
    options = _options()
    topic = f"bench.tail.{uuid.uuid4()}"
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=options.kafka), wait=WaitTopicSettings(topic=topic, partitions=1)
    )
    client = admin(settings.kafka)
    client.create_topics([NewTopic(topic, 1, 1, config=dict(CONFIG))])[topic].result(30)
    try:
        _write(settings, options.records, options.value_bytes)
        before = _resident_bytes()
        tail = Tail(0, options.records)
        reader = TailReader(settings, client, SystemClock(), 0, tail)
        began, cpu_began = time.monotonic(), time.process_time()
        end = reader.read_on()
        took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_began
        reader.close()
        memory = (_resident_bytes() - before) / options.records
        print(
            f"{end} records (half of them tombstones, values of {options.value_bytes} bytes) in {took_s:.1f} s: "
            f"{end / took_s:,.0f}/s, {cpu_s / end * 1e6:.1f} us of CPU each; {memory:.0f} bytes an id at most"
        )
    finally:
        client.delete_topics([topic])[topic].result(30)


def _write(settings: Settings, records: int, value_bytes: int) -> None:
    producer = Producer(producer_config(settings.kafka, **{"linger.ms": 5, "queue.buffering.max.messages": 200_000}))
    done = tombstone_headers(Outcome.DONE)
    for _ in range(records):
        key = str(uuid.uuid4()).encode()
        _send(producer, settings.wait.topic, key, os.urandom(value_bytes // 2).hex().encode(), HEADERS)
        _send(producer, settings.wait.topic, key, None, done)
    producer.flush(120)


def _send(
    producer: Producer, topic: str, key: bytes, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, headers=headers)
            return
        except BufferError:
            producer.poll(0.1)


def _resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", required=True, help="bootstrap servers of a broker to write to")
    parser.add_argument("--records", type=int, default=300_000, help="registrations, each with its tombstone")
    parser.add_argument("--value-bytes", type=int, default=320, help="size of a value, bytes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
