"""Partitions, ends, commits and records of topics, asked for by clients of our own, again and again during a run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tests.chaos.companion import Companion
from tests.chaos.history.history import Partition, Poll, topics_again
from tests.support.kafka_io import PASSING, Isolation, ReadRecord, as_record
from wait_registry.settings.tree import Settings

ANSWER_S, POLLED_WITHIN_S = 15.0, 2.0
SETTLED_S, POLL_S = 90.0, 0.2
# Faults add partitions, and redelivery topics are created, during a run.
METADATA_S = 0.5
TAP_S = 0.02
# On a busy machine, behind all that a run has written.
REST_S = 60.0


class OpenTransactionError(Exception):
    """A transaction stays open in a topic that is to be read to its end: it has outlived its own timeout."""


def reader(bootstrap: str, isolation: Isolation, group: str | None = None) -> Consumer:
    """Return a consumer that commits nothing and joins nothing; ``group`` is the one whose offsets it can ask for."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group or f"history-{uuid.uuid4()}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 10,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,  # faults stop the broker
        }
    )


def partitions_of(consumer: Consumer, topic: str, timeout_s: float = ANSWER_S) -> Sequence[int]:
    """Return the partitions of a topic, none when it isn't there; raise KafkaException without an answer."""
    described = consumer.list_topics(topic, timeout=timeout_s).topics[topic]
    if described.error is not None and described.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(described.error)
    return sorted(described.partitions)


def bounds_of(consumer: Consumer, place: Partition, timeout_s: float = ANSWER_S) -> tuple[int, int]:
    """Return the first offset, and the high watermark, or for a read_committed consumer the last stable offset."""
    answer: tuple[int, int] | None = consumer.get_watermark_offsets(
        TopicPartition(*place), timeout=timeout_s, cached=False
    )
    if answer is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return answer


def end_of(consumer: Consumer, place: Partition, timeout_s: float = ANSWER_S) -> int:
    """Return the second one of `bounds_of`."""
    return bounds_of(consumer, place, timeout_s)[1]


def committed_of(client: Consumer, places: Sequence[Partition], timeout_s: float = ANSWER_S) -> Mapping[Partition, int]:
    """Return the committed offsets of the consumer's group, without the partitions that have none."""
    answers = client.committed([TopicPartition(*place) for place in places], timeout=timeout_s) if places else []
    refused = next((answer.error for answer in answers if answer.error is not None), None)
    if refused is not None:
        raise KafkaException(refused)
    return {(answer.topic, answer.partition): answer.offset for answer in answers if answer.offset >= 0}


def wait_settled(bootstrap: str, topics: Sequence[str], deadline_s: float = SETTLED_S) -> Mapping[Partition, int]:
    """Wait until no transaction is open in these topics; return their ends, or raise OpenTransactionError."""
    committed, uncommitted = reader(bootstrap, "read_committed"), reader(bootstrap, "read_uncommitted")
    deadline = time.monotonic() + deadline_s
    try:
        places = [(topic, number) for topic in topics for number in partitions_of(uncommitted, topic)]
        while True:
            # The stable offsets last: what becomes stable in between counts as settled, what is written doesn't.
            ends = {place: end_of(uncommitted, place) for place in places}
            if all(end_of(committed, place) >= end for place, end in ends.items()):
                return ends
            if time.monotonic() >= deadline:
                raise OpenTransactionError(f"a transaction has been open in {topics} for {deadline_s:g} s")
            time.sleep(POLL_S)
    finally:
        committed.close()
        uncommitted.close()


class Watch(Companion):
    """Polls in a thread of its own, with clients of its own; a context manager.

    Each poll asks for the fields of `Poll` in their order. A poll without all its answers is skipped. Redelivery topics
    are watched once they exist.
    """

    def __init__(self, settings: Settings, interval_s: float = 0.2) -> None:
        self.polls: list[Poll] = []
        self._settings = settings
        self._consumed = (*settings.processor.topics, *topics_again(settings))
        self._letters = (settings.dead_letter.topic, *topics_again(settings))
        self._partitions: dict[str, Sequence[int]] = {}
        self._asked_s = -METADATA_S
        bootstrap = settings.kafka.bootstrap_servers
        self._committed = reader(bootstrap, "read_committed", settings.processor.group)
        self._uncommitted = reader(bootstrap, "read_uncommitted")
        super().__init__("watch", interval_s, self._poll_if_possible)

    def __exit__(self, *raised: Any) -> None:
        with closing(self._committed), closing(self._uncommitted):
            super().__exit__(*raised)

    def _poll_if_possible(self) -> None:
        with suppress(KafkaException):
            self.polls.append(self._poll())

    def _poll(self) -> Poll:
        self._learn_partitions()
        began_ms = time.time_ns() // 1_000_000
        offsets = committed_of(self._committed, self._places(self._consumed), POLLED_WITHIN_S)
        waits = self._places([self._settings.wait.topic])
        stable = {place[1]: end_of(self._committed, place, POLLED_WITHIN_S) for place in waits}
        ends = {place[1]: end_of(self._uncommitted, place, POLLED_WITHIN_S) for place in waits}
        letters = {place: end_of(self._uncommitted, place, POLLED_WITHIN_S) for place in self._places(self._letters)}
        return Poll(began_ms, time.time_ns() // 1_000_000, offsets, stable, ends, letters)

    def _learn_partitions(self) -> None:
        if time.monotonic() < self._asked_s + METADATA_S:
            return
        for topic in {*self._consumed, self._settings.wait.topic, *self._letters}:
            self._partitions[topic] = partitions_of(self._uncommitted, topic, POLLED_WITHIN_S)
        self._asked_s = time.monotonic()

    def _places(self, topics: Iterable[str]) -> list[Partition]:
        return [(topic, number) for topic in topics for number in self._partitions[topic]]


class Tap(Companion):
    """Reads what is deleted during a run in a thread of its own, committed records only; a context manager.

    The processors empty retry and redelivery topics, and operators delete records of these and dead letters.

    Attributes:
        records: what was read so far.
    """

    def __init__(self, settings: Settings) -> None:
        self.records: list[ReadRecord] = []
        self._topics = (settings.dead_letter.topic, *topics_again(settings))
        self._consumer = reader(settings.kafka.bootstrap_servers, "read_committed")
        self._read_to: dict[Partition, int] = {}
        self._asked_s = -METADATA_S
        super().__init__("tap", TAP_S, self._read)

    def __exit__(self, *raised: Any) -> None:
        try:
            super().__exit__(*raised)
        finally:
            self._consumer.close()

    def _read(self) -> None:
        with suppress(KafkaException):
            self._learn_partitions()
        for message in self._consumer.consume(1000, 0.05):
            error = message.error()
            place = (message.topic(), message.partition())
            if error is None:
                self.records.append(as_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._read_to[place] = message.offset()
            elif not error.retriable() and error.code() not in PASSING:
                # Above all, that records were deleted before they were read here: then nothing can be said.
                raise KafkaException(error)

    def _learn_partitions(self) -> None:
        if time.monotonic() < self._asked_s + METADATA_S:
            return
        self._asked_s = time.monotonic()
        places = [(topic, number) for topic in self._topics for number in partitions_of(self._consumer, topic, 2.0)]
        new = [place for place in places if place not in self._read_to]
        if new:
            self._read_to |= dict.fromkeys(new, 0)
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])

    def read_to(self, ends: Mapping[Partition, int]) -> list[ReadRecord]:
        """Return all records, once those below these ends are read; raises TimeoutError."""
        until_s = time.monotonic() + REST_S
        while any(self._read_to.get(place, 0) < end for place, end in ends.items()):
            if time.monotonic() > until_s:
                raise TimeoutError(f"read {self._topics} to {self._read_to}, whose ends are {dict(ends)}")
            time.sleep(TAP_S)
        return list(self.records)
