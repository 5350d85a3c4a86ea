"""What reading planned ranges costs beside a streaming query: run `python bench/planned_ranges.py --kafka HOST:PORT`.

Fills a topic with registrations and tombstones, then reads it to Arrow by turns in one Spark session: as a streaming
query with foreachBatch, and as batch reads of ranges planned from the log's end. Batches are equal. Prints the pace of
both and their CPU time per record (which other work on the machine hardly changes), the ratios (planned to streaming)
per turn, their medians, and the time of a small planned read.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame, SparkSession

from bench.contenders.product import cpu_s_of_all
from sink.read.batch import EXPRESSIONS
from wait_registry.kafka.clients import admin, java_client_config, producer_config
from wait_registry.local.guard import process_tree
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.root import Settings
from wait_registry.spark.session import spark_session, stop_session

HEADERS: Final = [("ORIGINAL_HEADERS", b"[]"), ("WAIT_GROUP", b"shop"), ("PADDING", b"x" * 400)]


class Reader:
    """Reads one topic from its start to its end, in either way."""

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, topic: str, ends: Mapping[int, int]) -> None:
        self._spark, self._topic, self._ends = spark, topic, ends
        client = java_client_config(kafka, **{"isolation.level": "read_committed", "fetch.max.wait.ms": 10})
        self._options = {f"kafka.{name}": value for name, value in client.items()}
        self._options |= {"includeHeaders": "true", "failOnDataLoss": "true"}
        self._group = f"bench-planned-{uuid.uuid4()}"

    def stream(self, batch_records: int) -> float:
        """Return the records per second of a streaming query, its first batch not counted."""
        stamps: list[tuple[float, int]] = []

        def take(frame: DataFrame, _: int) -> None:
            stamps.append((time.monotonic(), frame.toArrow().num_rows))

        options = self._options | {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(batch_records)}
        frame = self._spark.readStream.format("kafka").options(**options, subscribe=self._topic).load()
        with tempfile.TemporaryDirectory() as checkpoint:
            query = (
                frame.selectExpr(*EXPRESSIONS)
                .writeStream.foreachBatch(take)
                .option("checkpointLocation", Path(checkpoint).as_uri())
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        began, last = stamps[1][0], stamps[-1][0]
        return (len(stamps) - 2) * batch_records / (last - began)

    def planned(self, batch_records: int) -> float:
        """Return the records per second of planned ranges, the first not counted."""
        stamps = []
        for begin, end in self._ranges(batch_records):
            self.read(begin, end)
            stamps.append(time.monotonic())
        return (len(stamps) - 2) * batch_records / (stamps[-1] - stamps[1])

    def read(self, begin: Mapping[int, int], end: Mapping[int, int]) -> int:
        """Read one range of every partition and return how many records it held."""
        options = self._options | {
            "kafka.group.id": self._group,
            "kafkaConsumer.pollTimeoutMs": "10000",
            "assign": json.dumps({self._topic: list(begin)}),
            "startingOffsets": json.dumps({self._topic: begin}),
            "endingOffsets": json.dumps({self._topic: end}),
        }
        frame = self._spark.read.format("kafka").options(**options).load()
        return int(frame.selectExpr(*EXPRESSIONS).toArrow().num_rows)

    def _ranges(self, batch_records: int) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        share, at = batch_records // len(self._ends), dict.fromkeys(self._ends, 0)
        while at != self._ends:
            until = {partition: min(end, at[partition] + share) for partition, end in self._ends.items()}
            yield at, until
            at = until


def main() -> None:
    """Run as the module's docstring says."""
    options = _options()
    topic = f"bench.planned.{uuid.uuid4()}"
    settings = Settings(kafka=KafkaSettings(bootstrap_servers=options.kafka))
    client = admin(settings.kafka)
    client.create_topics([NewTopic(topic, options.partitions, 1)])[topic].result(30)
    spark = spark_session(settings, "bench-planned-ranges")
    try:
        per_partition = _write(settings.kafka, topic, options)
        reader = Reader(spark, settings.kafka, topic, dict.fromkeys(range(options.partitions), per_partition))
        ways: tuple[Callable[[int], float], ...] = (reader.stream, reader.planned)
        for way in ways:
            way(options.batch)  # the JVM warms up
        paces, costs = [], []
        for turn in range(options.turns):
            found = {way.__name__: _measured(way, options) for way in (ways if turn % 2 else ways[::-1])}
            (stream_pace, stream_us), (planned_pace, planned_us) = found["stream"], found["planned"]
            paces.append(planned_pace / stream_pace)
            costs.append(planned_us / stream_us)
            print(
                f"turn {turn + 1}: streaming {stream_pace:,.0f}/s and {stream_us:.1f} us of CPU per record, "
                f"planned {planned_pace:,.0f}/s and {planned_us:.1f} us; ratios {paces[-1]:.2f} and {costs[-1]:.2f}",
                flush=True,
            )
        print(f"median ratios: pace {statistics.median(paces):.2f}, CPU {statistics.median(costs):.2f}")
        small = [_timed(reader, per_partition - 2 - turn) for turn in range(10)]
        print(f"a read of {options.partitions} records: median {statistics.median(small):.2f} s")
    finally:
        stop_session(spark)
        client.delete_topics([topic])[topic].result(30)


def _measured(way: Callable[[int], float], options: argparse.Namespace) -> tuple[float, float]:
    processes = process_tree(os.getpid())
    began = cpu_s_of_all(processes)
    pace = way(options.batch)
    return pace, (cpu_s_of_all(processes) - began) / options.records * 1e6


def _timed(reader: Reader, offset: int) -> float:
    began, partitions = time.monotonic(), list(reader._ends)
    reader.read(dict.fromkeys(partitions, offset), dict.fromkeys(partitions, offset + 1))
    return time.monotonic() - began


def _write(kafka: KafkaSettings, topic: str, options: argparse.Namespace) -> int:
    producer = Producer(producer_config(kafka, **{"linger.ms": 5, "queue.buffering.max.messages": 500_000}))
    done, body = tombstone_headers(Outcome.DONE), os.urandom(options.value_bytes)
    per_partition: int = options.records // options.partitions // 2 * 2
    for number in range(per_partition):
        key = str(uuid.UUID(int=number // 2)).encode()
        for partition in range(options.partitions):
            if number % 2:
                producer.produce(topic, None, key, partition, headers=done)
            else:
                producer.produce(topic, body, key, partition, headers=HEADERS)
        producer.poll(0 if len(producer) < 400_000 else 1)
    producer.flush(120)
    return per_partition


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", required=True, help="bootstrap servers of a broker to write to")
    parser.add_argument("--records", type=int, default=400_000, help="records, half of them tombstones")
    parser.add_argument("--partitions", type=int, default=4, help="of the topic")
    parser.add_argument("--batch", type=int, default=25_000, help="records in a batch")
    parser.add_argument("--value-bytes", type=int, default=320, help="size of a value, bytes")
    parser.add_argument("--turns", type=int, default=5, help="how often each way reads the topic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
