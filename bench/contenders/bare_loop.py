"""The ceiling: consume, wait record, commit of the acknowledged prefix, no-op, tombstone, and nothing else.

What the pattern costs in Python and librdkafka before any safety or comfort is added: one thread, no event loop, no
workers. The batches, client settings (the processor's own, imported) and contract are the processor's: value, key and
all headers of a wait record, its wait ID, a tombstone with its outcome. Headers that all records share are made once,
those of a batch once per batch, and the partition is left to the client.

It leaves out what the processor is for: handlers that wait, timeouts, retries, dead letters, rebalances (it is alone in
its group), the assignment warm-up, renewals, bounds in bytes, start checks, metrics, logs. A tombstone's delivery isn't
followed one by one: the idempotent producer either delivers it or fails for good, which ends the process.

`plain` as second argument leaves out wait record and tombstone too: what a consumer costs that reads, calls and
commits. It takes a million records per second, so at the end of a partition it begins that partition again. Options:
`linger_ms` (5) and `compression` (lz4) of the producer.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench.contenders.flow_program import BlockingCall, FlowArguments, MeasuredRun, blocking_call
from bench.contenders.load import delete
from bench.contenders.product import TTL_S, processor_settings
from processor.intake.group_config import group_config
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.kafka.cluster import cluster_id
from wait_registry.kafka.topics import create_topics
from wait_registry.records import header_names
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.original import TIMESTAMP_TYPES, Original
from wait_registry.records.times import format_utc_ms
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.service.gc_tuning import tune_gc
from wait_registry.settings.tree import Settings

COMMIT_EVERY_S: Final = 0.5
NOTHING_CAME_S: Final = 0.001
TAKEN_AT_ONCE: Final = 2_000
# As the processor's default: records registered and not settled, at most.
OUTSTANDING: Final = 20_000
FLUSH_S: Final = 30.0


class Batch:
    """What one `consume` brought: how many aren't acknowledged yet, and where each partition ends after it."""

    __slots__ = ("acknowledged", "ends", "left")

    def __init__(self, left: int, acknowledged: deque[Message]) -> None:
        self.left = left
        self.ends: dict[int, int] = {}
        self.acknowledged = acknowledged

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Take a delivery report of a wait record."""
        if error is not None:
            raise KafkaException(error)
        self.left -= 1
        self.acknowledged.append(message)


class WaitHeaders:
    """The headers of wait records, as `WaitRecordEncoder` has them, with as little work as can be."""

    def __init__(self, settings: Settings) -> None:
        encoder = WaitRecordEncoder(
            settings.processor.group, "bare-loop", settings.dead_letter.topic, ExpiryRule("dlq", 3)
        )
        first = encoder.headers(Original(settings.processor.topics[0], 0, 0, 0, "create", b"", b"", ()), "", 0)
        self._topic, self._last = first[0], first[10:]
        self._types = [(header_names.ORIGINAL_TIMESTAMP_TYPE, kind.encode()) for kind in TIMESTAMP_TYPES]
        self._null = {null: (header_names.ORIGINAL_VALUE_NULL, b"true" if null else b"false") for null in (True, False)}
        self._expires = (header_names.WAIT_EXPIRATION_TIME, b"")

    def begin_batch(self) -> None:
        """Let what is registered from now on expire together."""
        expires_at_ms = time.time_ns() // 1_000_000 + TTL_S * 1000
        self._expires = (header_names.WAIT_EXPIRATION_TIME, format_utc_ms(expires_at_ms).encode())

    def of(self, message: Message, identifier: str, partition: int, offset: int) -> list[tuple[str, bytes | None]]:
        """Return the headers of a message's wait record."""
        kind, timestamp_ms = message.timestamp()
        headers = message.headers()
        return [
            self._topic,
            (header_names.ORIGINAL_PARTITION, b"%d" % partition),
            (header_names.ORIGINAL_OFFSET, b"%d" % offset),
            (header_names.ORIGINAL_TIMESTAMP, b"%d" % timestamp_ms),
            self._types[kind],
            (header_names.ORIGINAL_KEY, message.key()),
            (header_names.ORIGINAL_HEADERS, encode_headers_json(tuple(headers)) if headers else b"[]"),
            self._null[message.value() is None],
            (header_names.WAIT_EXPIRATION_UUID, identifier.encode()),
            self._expires,
            *self._last,
        ]


class BareLoop:
    """The loop; `run` returns when `stop` has been called and everything is acknowledged and committed."""

    def __init__(self, settings: Settings, producer: Producer, call: BlockingCall, plain: bool) -> None:
        self._topic = settings.processor.topics[0]
        self._group = settings.processor.group
        self._wait_topic = settings.wait.topic
        self._call = call
        self._take_on = self._handle if plain else self._register
        own = {"auto.offset.reset": "earliest", "enable.partition.eof": plain, "error_cb": end_on_fatal}
        self._consumer = Consumer({**group_config(settings), **own})
        self._producer = producer
        self._cluster_id = cluster_id(admin(settings.kafka))
        self._headers = WaitHeaders(settings)
        self._acknowledged: deque[Message] = deque()
        self._batches: deque[Batch] = deque()
        self._outstanding = 0
        self._prefix: dict[int, int] = {}
        self._stopped = False

    def stop(self) -> None:
        """Take nothing more."""
        self._stopped = True

    def run(self) -> None:
        """Work until `stop`."""
        self._consumer.subscribe([self._topic])
        committed_s = time.monotonic()
        while not self._stopped:
            self._producer.poll(0)
            self._settle_acknowledged()
            taken = self._consumer.consume(min(TAKEN_AT_ONCE, OUTSTANDING - self._outstanding), 0)
            if taken:
                self._take_on(self._records(taken))
            elif not self._acknowledged:
                self._producer.poll(NOTHING_CAME_S)
            if time.monotonic() - committed_s >= COMMIT_EVERY_S:
                committed_s = time.monotonic()
                self._commit(asynchronous=True)
        while self._outstanding:
            self._producer.poll(NOTHING_CAME_S)
            self._settle_acknowledged()
        if left := self._producer.flush(FLUSH_S):
            raise TimeoutError(f"{left} tombstones aren't acknowledged")
        self._commit(asynchronous=False)
        self._consumer.close()

    def _records(self, messages: list[Message]) -> list[Message]:
        """Return the records among what came; a partition whose end was reported begins again."""
        ended = [(message, error) for message in messages if (error := message.error()) is not None]
        for message, error in ended:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._consumer.seek(TopicPartition(self._topic, message.partition(), 0))
        return [message for message in messages if message.error() is None] if ended else messages

    def _register(self, messages: list[Message]) -> None:
        batch = Batch(len(messages), self._acknowledged)
        headers, ends, group = self._headers, batch.ends, self._group
        headers.begin_batch()
        for message in messages:
            partition, offset = message.partition(), message.offset()
            identifier = wait_id(self._cluster_id, (self._topic, partition, offset), group, message.timestamp()[1])
            made = headers.of(message, identifier, partition, offset)
            self._produce(message.value() or b"", identifier, made, batch.delivered)
            ends[partition] = offset + 1
        self._batches.append(batch)
        self._outstanding += len(messages)

    def _handle(self, messages: list[Message]) -> None:
        for message in messages:
            self._call(message.value())
            self._prefix[message.partition()] = message.offset() + 1

    def _settle_acknowledged(self) -> None:
        """Call the handler for what is registered, and write its tombstone."""
        acknowledged, done = self._acknowledged, tombstone_headers(Outcome.DONE)
        while acknowledged:
            message = acknowledged.popleft()
            self._call(message.value())
            self._produce(None, message.key(), done, None)
            self._outstanding -= 1

    def _produce(self, value: bytes | None, key: bytes | str, headers: Any, delivered: Any) -> None:
        while True:
            try:
                self._producer.produce(self._wait_topic, value, key, headers=headers, on_delivery=delivered)
            except BufferError:
                self._producer.poll(NOTHING_CAME_S)
            else:
                return

    def _commit(self, asynchronous: bool) -> None:
        batches = self._batches
        while batches and batches[0].left == 0:
            self._prefix |= batches.popleft().ends
        if self._prefix:
            offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in self._prefix.items()]
            self._consumer.commit(offsets=offsets, asynchronous=asynchronous)
            self._prefix = {}


def producer_properties(settings: Settings, linger_ms: float, compression: str) -> dict[str, Any]:
    """Return the processor's."""
    size, own = min(1_000_000, settings.wait.max_message_bytes), {"error_cb": end_on_fatal}
    batches = {"linger.ms": linger_ms, "batch.size": size, "compression.type": compression}
    return producer_config(settings.kafka, **batches, **own)


def end_on_fatal(error: KafkaError) -> None:
    """Raise an error that a client can't recover from."""
    if error.fatal():
        raise KafkaException(error)


def main(arguments: FlowArguments, plain: bool) -> None:
    """Measure, and print the line."""
    options, settings = arguments.options, processor_settings(arguments)
    run = MeasuredRun(arguments, at_end=lambda: loop.stop())
    create_topics(settings)
    try:
        properties = producer_properties(settings, options.get("linger_ms", 5), options.get("compression", "lz4"))
        # It has no workers: `timed` would make one call after the other.
        loop = BareLoop(settings, Producer(properties), blocking_call(arguments.handler, run.meter), plain)
        tune_gc()
        loop.run()
    finally:
        if not options.get("keep_topics"):
            delete(arguments.kafka, settings.wait.topic, settings.dead_letter.topic)


if __name__ == "__main__":
    main(FlowArguments(**json.loads(sys.argv[-1])), "plain" in sys.argv[1:-1])
