"""What is written to a wait topic for the sink: real wait records and tombstones, in a chosen order; and its writer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.contenders.load import SEED, held
from bench.contenders.product import settings_of, waitreg
from bench.harness.row import Bench
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.kafka import KafkaSettings
from waitreg.local.environment import as_environment

INPUT_TOPIC: Final = "bench.orders"
INPUT_PARTITIONS: Final = 12
GROUP: Final = "bench.billing"
INSTANCE: Final = "host-1-20261121T022000.000Z"
# The first original's own time; registrations come at about this rate.
FIRST_TIME_MS: Final = 1_795_227_600_000
RECORDS_PER_MS: Final = 50
CUSTOMERS: Final = 200_000
EXPIRES_IN_MS: Final = 86_400_000
HEADERS: Final = (("tenant", b"acme"), ("content-type", b"application/json"))
POLL_EVERY: Final = 2_000
# Values are parts of it; it is longer than the window in which a compression looks for repetitions.
POOL: Final = Random(SEED).randbytes(2_000_000).hex().encode()
FLUSH_S: Final = 120.0
# The part of a log from which on a contender counts as warm: batches begin small, and compilers need real work.
WARM_SHARE: Final = 0.4
# Nothing younger is compacted: a broker that cleans during a measurement takes a core from what is measured.
UNTOUCHED_MS: Final = 6 * 3_600_000
DONE: Final = tombstone_headers(Outcome.DONE)


@dataclass(frozen=True, slots=True)
class WaitLog:
    """A wait topic's content: wait records of different IDs, and `tombstone_after` records later their tombstones.

    Of `left_open_every` waits one never gets a tombstone; all get one when 0, none gets one when 1.
    """

    topic: str
    waits: int = 0
    tombstone_after: int = 1_000
    partitions: int = 4
    value_bytes: int = 200
    left_open_every: int = 0

    @property
    def left_open(self) -> int:
        """How many waits never get a tombstone."""
        return -(-self.waits // self.left_open_every) if self.left_open_every else 0

    @property
    def records(self) -> int:
        """Wait records and tombstones."""
        return 2 * self.waits - self.left_open

    @property
    def waits_ahead(self) -> int:
        """How many waits come before the first tombstone: behind them they alternate, so they are open at any time."""
        return min(self.waits, max(1, self.tombstone_after // 2))

    @property
    def measured(self) -> tuple[int, int]:
        """The stretch in records in which waits and tombstones alternate and contenders are warm."""
        last = self.records - sum(map(self.is_resolved, range(self.waits - self.waits_ahead, self.waits)))
        return max(self.waits_ahead, round(self.records * WARM_SHARE)), last

    def is_resolved(self, index: int) -> bool:
        """Return whether a wait gets a tombstone."""
        return not self.left_open_every or index % self.left_open_every != 0

    def order(self) -> Iterator[tuple[int, bool]]:
        """Yield each record in the order of writing: the index of its wait, and whether it is the wait record."""
        ahead = self.waits_ahead
        for index in range(self.waits + ahead):
            if index < self.waits:
                yield index, True
            if index >= ahead and self.is_resolved(index - ahead):
                yield index - ahead, False


def original(index: int, value_bytes: int) -> Original:
    """Return a record that is registered; its value hardly compresses."""
    place = (INPUT_TOPIC, index % INPUT_PARTITIONS, index // INPUT_PARTITIONS, FIRST_TIME_MS + index // RECORDS_PER_MS)
    first, key = index * value_bytes % (len(POOL) - value_bytes), b"customer-%d" % (index * 7919 % CUSTOMERS)
    return Original(*place, "create", key, POOL[first : first + value_bytes], HEADERS)


class WaitLogWriter:
    """A producer of wait records and tombstones with the product's settings; usable again and again."""

    def __init__(self, kafka: str) -> None:
        queue = {"queue.buffering.max.messages": 200_000, "queue.buffering.max.kbytes": 262_144, "linger.ms": 5}
        reports = {"on_delivery": _require_delivered, "delivery.report.only.error": True}
        self._producer = Producer(producer_config(KafkaSettings(bootstrap_servers=kafka), **queue, **reports))

    def write(self, log: WaitLog, first: int = 0) -> None:
        """Write a log's records, from the index of its first wait on, until the broker has acknowledged them all."""
        encoder = WaitRecordEncoder(GROUP, INSTANCE, f"{log.topic}.dlq", ExpiryRule("dlq", 3))
        expires_at_ms = time.time_ns() // 1_000_000 + EXPIRES_IN_MS
        for number, (index, is_wait) in enumerate(log.order(), 1):
            record = original(first + index, log.value_bytes)
            place = (record.topic, record.partition, record.offset)
            key = wait_id(log.topic, place, GROUP, record.timestamp_ms)
            if is_wait:
                self._send(log.topic, key, record.value, encoder.headers(record, key, expires_at_ms))
            else:
                self._send(log.topic, key, None, DONE)
            if number % POLL_EVERY == 0:
                self._producer.poll(0)
        self._finish()

    def _finish(self) -> None:
        if left := self._producer.flush(FLUSH_S):
            raise TimeoutError(f"{left} records are still on their way")

    def write_dead_letters(self, log: WaitLog) -> None:
        """Write the dead letters that the log's registrations would have, if they had failed."""
        failure = Failure(Reason.FAILED, "errors.Refused", "the payment service answered 503", None, FIRST_TIME_MS)
        for index in range(log.waits):
            record = original(index, log.value_bytes)
            place = (record.topic, record.partition, record.offset)
            key = wait_id(log.topic, place, GROUP, record.timestamp_ms)
            lineage = Lineage.of(
                record, wait_id=key, wait_partition=0, wait_offset=index, group=GROUP, instance=INSTANCE, delivery=1
            )
            self._send(f"{log.topic}.dlq", key, record.value, dead_letter_headers(record.headers, lineage, failure))
            if index % POLL_EVERY == 0:
                self._producer.poll(0)
        self._finish()

    def _send(self, topic: str, key: str, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers)
                return
            except BufferError:
                self._producer.poll(0.05)


def _require_delivered(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def prepare_topics(bench: Bench, log: WaitLog) -> AdminClient:
    """Make a log's topics by `waitreg topics create`, keep the cleaner away, and return a client."""
    waitreg(bench, as_environment(settings_of(bench, log.topic, log.partitions)), "topics", "create")
    client = admin(KafkaSettings(bootstrap_servers=bench.kafka))
    entry = ConfigEntry("min.compaction.lag.ms", str(UNTOUCHED_MS), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, log.topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)
    return client


def fill(log: WaitLog, bench: Bench) -> None:
    """Make a log's topics and write it, unless that has been done."""
    client = prepare_topics(bench, log)
    if held(client, log.topic, log.partitions) == log.records:
        return
    began = time.monotonic()
    WaitLogWriter(bench.kafka).write(log)
    if (found := held(client, log.topic, log.partitions)) != log.records:
        raise OSError(f"{log.topic} holds {found} records, {log.records} were written")
    bench.say(f"wrote {log.records} records to {log.topic} in {time.monotonic() - began:.0f} s")
