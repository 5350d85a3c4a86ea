"""Partitions, ends and commits of topics, asked for by clients of our own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.chaos.history.history import Partition
from tests.support.kafka_io import Isolation

ANSWER_S = 15.0
SETTLED_S = 90.0
POLL_S = 0.2


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


def end_of(consumer: Consumer, place: Partition, timeout_s: float = ANSWER_S) -> int:
    """Return the high watermark, or for a read_committed consumer the last stable offset."""
    answer = consumer.get_watermark_offsets(TopicPartition(*place), timeout=timeout_s, cached=False)
    if answer is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    end: int = answer[1]
    return end


def committed_of(
    consumer: Consumer, places: Sequence[Partition], timeout_s: float = ANSWER_S
) -> Mapping[Partition, int]:
    """Return the committed offsets of the consumer's group, without the partitions that have none."""
    answers = consumer.committed([TopicPartition(*place) for place in places], timeout=timeout_s) if places else []
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
