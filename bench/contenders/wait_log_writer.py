"""Writes a wait topic as fast as the broker takes it, by the topic and producer settings of the product."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.contenders.our_settings import our_settings
from bench.contenders.wait_log import Registrations, WaitLog
from bench.harness.row import Bench
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.topics import create_topics
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.root import Settings

POLL_EVERY: Final = 2_000
FULL_QUEUE_S: Final = 0.05
SLOWEST_RECORDS_PER_S: Final = 5_000
LEAST_S: Final = 60.0
# Nothing younger is compacted: a broker that cleans during a measurement takes a core from what is measured. No longer
# than max.compaction.lag.ms, which the broker insists on.
UNTOUCHED_MS: Final = 6 * 3_600_000
DONE: Final = tombstone_headers(Outcome.DONE)

# Index of a wait, partition and offset where the broker put it.
OnRegistered = Callable[[int, int, int], None]
Reports = Mapping[str, Callable[[KafkaError | None, Message], None]]


class WritingFailed(RuntimeError):
    """The broker refused a record, or took too long."""


def fill(bench: Bench, log: WaitLog) -> None:
    """Make a log's topics and write it, unless that has been done.

    Raises:
        WritingFailed: it can't be written, or something else stands in the topic.
    """
    settings = our_settings(bench, log)
    make_topics(settings)
    if _standing(settings) == log.records:
        return
    began = time.monotonic()
    WaitLogWriter(settings.kafka).write(log)
    standing, took_s = _standing(settings), time.monotonic() - began
    if standing != log.records:
        raise WritingFailed(f"{log.topic} holds {standing} records, {log.records} were written")
    bench.say(f"wrote {log.records} records to {log.topic} in {took_s:.0f} s ({log.records / took_s:.0f}/s)")


def make_topics(settings: Settings) -> None:
    """Make wait and dead letter topic as `waitreg topics create` does, and keep the cleaner away from the first."""
    create_topics(settings)
    client = admin(settings.kafka)
    entry = ConfigEntry("min.compaction.lag.ms", str(UNTOUCHED_MS), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, settings.wait.topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)


class WaitLogWriter:
    """A producer of wait records and tombstones; usable again and again."""

    def __init__(self, kafka: KafkaSettings, on_registered: OnRegistered | None = None) -> None:
        """Make the producer; it connects by itself.

        Args:
            kafka: the cluster.
            on_registered: told where each wait record stands; costs a fifth of the pace.
        """
        self._on_registered = on_registered
        self._error: KafkaError | None = None
        self._deadline = 0.0
        own = {
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 262_144,
            "on_delivery": self._failed,
            "delivery.report.only.error": on_registered is None,
        }
        self._producer = Producer(producer_config(kafka, **own))

    def write(self, log: WaitLog, *, first: int = 0) -> None:
        """Write a log's records and wait until the broker has acknowledged them all.

        Args:
            log: what to write.
            first: index of the first wait, for a topic that gets more than one log.

        Raises:
            WritingFailed: the broker refuses a record, or takes too long.
        """
        self._deadline = time.monotonic() + LEAST_S + log.records / SLOWEST_RECORDS_PER_S
        made = Registrations(log, time.time_ns() // 1_000_000)
        for number, (index, is_wait) in enumerate(log.order(), 1):
            place = first + index
            key = made.wait_id(place)
            if is_wait:
                self._send(log.topic, key, made.value(place), made.headers(place, key), self._reporting(place))
            else:
                self._send(log.topic, key, None, DONE, {})
            if number % POLL_EVERY == 0:
                self._poll(0)
        while len(self._producer):
            self._poll(0.1)
        self._poll(0)

    def _send(self, topic: str, key: str, value: bytes | None, headers: Sequence[object], report: Reports) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers, **report)
                return
            except BufferError:
                self._poll(FULL_QUEUE_S)

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._error is not None:
            raise WritingFailed(f"the broker refused a record: {self._error.str()}")
        if time.monotonic() > self._deadline:
            raise WritingFailed(f"{len(self._producer)} records are still on their way")

    def _reporting(self, index: int) -> Reports:
        """Return the keyword argument of `produce` that has a record reported, if anybody wants to know."""
        told = self._on_registered
        if told is None:
            return {}

        def report(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is None and partition is not None and offset is not None:
                told(index, partition, offset)
            else:
                self._failed(error, message)

        return {"on_delivery": report}

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        self._error = self._error or error


def _standing(settings: Settings) -> int:
    ends = end_offsets(admin(settings.kafka), settings.wait.topic, range(settings.wait.partitions))
    return sum(ends.values())
