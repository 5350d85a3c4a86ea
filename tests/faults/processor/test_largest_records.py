"""The largest records that an input topic takes go through unchanged, whatever makes them large (P1, P5)."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.topics import Topics
from wait_registry.handler import PermanentError, Record

LARGEST = 1_048_588
# What a batch of one record is larger than what it carries, at most.
FRAME_BYTES = 120
# In JSON larger than the limit of the wait topic, which counts what is compressed.
MANY = 200_000


def in_value(size: int) -> Outgoing:
    return Outgoing(os.urandom(size), None)


def in_key(size: int) -> Outgoing:
    return Outgoing(b"", os.urandom(size))


def in_a_header(size: int) -> Outgoing:
    return Outgoing(b"", None, (("name", os.urandom(size)),))


def in_many_headers(size: int) -> Outgoing:
    # Three bytes each in a record, a dozen in JSON.
    return Outgoing(os.urandom(size - 3 * MANY), None, (("n", None),) * MANY)


def publish_the_largest(topics: Topics, topic: str, shape: Callable[[int], Outgoing]) -> ReadRecord:
    """Publish the largest record of a shape that the topic takes; one a little larger is refused."""
    refused = 0
    for size in range(LARGEST, LARGEST - FRAME_BYTES, -8):
        if _is_taken(topics.bootstrap, topic, shape(size)):
            break
        refused += 1
    assert 0 < refused < FRAME_BYTES // 8
    return topics.read(topic)[-1]


def _is_taken(bootstrap: str, topic: str, record: Outgoing) -> bool:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 4 * LARGEST, "linger.ms": 0})
    producer.produce(
        topic,
        record.value,
        record.key,
        partition=0,
        headers=list(record.headers),
        on_delivery=lambda error, _: errors.append(error),
    )
    assert producer.flush(60) == 0
    [error] = errors
    if error is not None and error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        raise KafkaException(error)
    return error is None


@pytest.mark.fault("F37")
@pytest.mark.parametrize("shape", [in_value, in_key, in_a_header, in_many_headers])
def test_the_largest_record_of_each_shape_comes_out_as_it_went_in(
    shape: Callable[[int], Outgoing], processor_scenario: ScenarioFactory
) -> None:
    handled: list[Record] = []

    async def refuses(record: Record) -> None:
        handled.append(record)
        raise PermanentError("no")

    at = processor_scenario(refuses, 1, topic_config={"max__message__bytes": str(LARGEST)})
    published = publish_the_largest(at.topics, at.topic, shape)
    at.run_once()
    [letter], [record] = at.letters(), handled
    own = len(published.headers)
    assert (record.key, record.value, record.headers) == (published.key, published.value, published.headers)
    assert (letter.key, letter.value, letter.headers[:own]) == (published.key, published.value, published.headers)
    assert letter.text("DLQ_REASON") == "failed"
    assert [story.outcomes for story in at.stories().values()] == [["dead_lettered"]]
