"""The load generator: publishes records at a rate or as fast as the broker takes them, and keeps a manifest."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import admin, producer_config
from wait_registry.kafka.cluster import describe_topic
from wait_registry.settings.tree import Settings
from waitreg.load.committed_records import read_committed, read_headers
from waitreg.load.json_lines import JsonLines
from waitreg.load.manifest import Coordinates, Fingerprint, Published, fingerprint, read_manifest
from waitreg.load.orders import Order, order
from waitreg.load.shapes import Maker

POLL_EVERY = 100
DELIVERY_TIMEOUT_MS = 60_000
NEW_TOPIC_S = 3.0

Unplaced = tuple[int, Fingerprint]
"""Partition and content of a record whose offset is unknown."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What to publish.

    ``records``: how many, None until it is asked to stop. ``rate_per_s``: records per second, None for no limit.
    ``seed`` chooses the content. ``first`` is the index of the first record, so that two loads of one seed can publish
    different ones. ``make`` makes the record of a seed and an index. Acknowledged records are appended to ``manifest``.
    """

    topic: str
    records: int | None
    rate_per_s: float | None = None
    seed: int = 1
    first: int = 0
    make: Maker = order
    manifest: Path | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """How many records the broker acknowledged, in how many seconds."""

    records: int
    seconds: float


class _Publication:
    """The deliveries of one load; the producer's callbacks run in the thread that polls."""

    def __init__(self, producer: Producer, manifest: JsonLines | None, progress: Callable[[int], None]) -> None:
        self.acknowledged = 0
        self.unplaced: list[Unplaced] = []
        self._error: KafkaError | None = None
        self._producer = producer
        self._manifest = manifest
        self._progress = progress

    def publish(self, topic: str, record: Order) -> None:
        content = fingerprint(record.key, record.value, record.headers)
        while True:
            try:
                self._producer.produce(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                    timestamp=record.timestamp_ms,
                    on_delivery=lambda error, message: self._delivered(error, message, content),
                )
                return
            except BufferError:
                self.poll(0.1)

    def poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._error is not None:
            stopped = f"the load stopped after {self.acknowledged} records: {self._error.str()}"
            if self._error.retriable() or self._error.code() == KafkaError._MSG_TIMED_OUT:
                raise TransientError(f"{stopped}; try again")
            raise ConfigurationError(stopped)
        self._progress(self.acknowledged)

    def _delivered(self, error: KafkaError | None, message: Message, content: Fingerprint) -> None:
        if error is not None:
            self._error = self._error or error
            return
        self.acknowledged += 1
        if self._manifest is not None:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None and partition is not None
            if offset is None:
                self.unplaced.append((partition, content))
            else:
                self._manifest.append(Published(topic, partition, offset, message.timestamp()[1], content))


def run_load(
    settings: Settings,
    plan: LoadPlan,
    progress: Callable[[int], None] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> LoadResult:
    """Publish the plan's records and wait until the broker has acknowledged all of them.

    Args:
        settings: name the cluster.
        plan: what to publish.
        progress: called with the number acknowledged so far.
        stopping: once it returns True nothing more is published, only waited for.

    Raises:
        ConfigurationError: the topic does not exist or refuses a record.
        TransientError: the broker did not acknowledge within a minute, or the manifest can't be completed.
    """
    overrides = {"linger.ms": 5, "message.timeout.ms": DELIVERY_TIMEOUT_MS}
    producer = Producer(producer_config(settings.kafka, **overrides))
    _require_topic(settings, plan.topic)
    started = time.monotonic()
    with ExitStack() as resources:
        manifest = resources.enter_context(JsonLines(plan.manifest)) if plan.manifest else None
        publication = _Publication(producer, manifest, progress)
        for number in count() if plan.records is None else range(plan.records):
            if stopping():
                break
            publication.publish(plan.topic, plan.make(plan.seed, plan.first + number))
            if plan.rate_per_s is not None:
                _pace(publication, started + (number + 1) / plan.rate_per_s, stopping)
            elif number % POLL_EVERY == 0:
                publication.poll(0)
        while len(producer):
            publication.poll(0.1)
        publication.poll(0)
        seconds = time.monotonic() - started
        if manifest is not None and plan.manifest is not None and publication.unplaced:
            _place(settings, plan.topic, publication.unplaced, plan.manifest, manifest)
    return LoadResult(publication.acknowledged, seconds)


def _place(settings: Settings, topic: str, unplaced: Iterable[Unplaced], listed: Path, manifest: JsonLines) -> None:
    for record in places_of(settings, topic, unplaced, {record.coordinates for record in read_manifest(listed)}):
        manifest.append(record)


def _require_topic(settings: Settings, topic: str) -> None:
    # Asked first: without it a missing topic is found out only when the delivery times out. A broker learns of a topic
    # that has just been created a moment later.
    client, deadline = admin(settings.kafka), time.monotonic() + NEW_TOPIC_S
    while True:
        try:
            describe_topic(client, topic)
            return
        except ConfigurationError as error:
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"{error}. Check --topic, or make it: `waitreg topics create --set processor.topics={topic} "
                    "--input-partitions 6`"
                ) from error
        time.sleep(0.1)


def _pace(publication: _Publication, due: float, stopping: Callable[[], bool]) -> None:
    publication.poll(0)
    while (ahead := due - time.monotonic()) > 0 and not stopping():
        publication.poll(min(ahead, 0.1))


def places_of(
    settings: Settings, topic: str, unplaced: Iterable[Unplaced], listed: Collection[Coordinates]
) -> Sequence[Published]:
    """Find records by their content, reading their topic from its beginning.

    If an idempotent producer loses the answer to a batch, it sends the batch again; the broker then acknowledges a
    duplicate without its offset. That is rare, so it may take long.

    Args:
        settings: name the cluster.
        topic: of the records.
        unplaced: their partitions and contents.
        listed: places of other records. Of equal records that aren't listed the last ones are taken.

    Raises:
        TransientError: the topic can't be read, or lacks one of them.
    """
    wanted = Counter(unplaced)
    found: dict[Unplaced, list[Published]] = defaultdict(list)
    for message in read_committed(settings, topic):
        partition, offset, headers = message.partition(), message.offset(), read_headers(message)
        assert partition is not None and offset is not None
        if (topic, partition, offset) in listed or headers is None:
            continue
        content = fingerprint(message.key(), message.value(), headers)
        if (partition, content) in wanted:
            found[partition, content].append(Published(topic, partition, offset, message.timestamp()[1], content))
    placed = [one for content, count in wanted.items() for one in found[content][-count:]]
    if len(placed) < wanted.total():
        raise TransientError(
            f"{wanted.total() - len(placed)} records were acknowledged without a place, and {topic} doesn't show them: "
            "the manifest lacks them. Start again with another topic and another manifest"
        )
    return placed
