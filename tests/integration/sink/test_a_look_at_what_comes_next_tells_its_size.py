"""P7: before a sink asks for a batch it knows how large the records are that come next."""

from __future__ import annotations

from sink.position import TopicPartition
from sink.sampling import SAMPLE_RECORDS, WORTH_A_LOOK, sample_sizes
from tests.conftest import SettingsFactory
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics

KEY, VALUE, HEADER = b"k" * 10, b"v" * 80, ("name", b"12345.")


def test_sizes_are_those_of_the_records_from_the_position_on(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 2)
    large = [Outgoing(b"v" * 5_000, partition=0)] * 10
    topics.produce(topic, [*large, *[Outgoing(VALUE, KEY, (HEADER, ("null", None)), 0)] * WORTH_A_LOOK])
    topics.produce(topic, [Outgoing(b"read already", partition=1)] * 3)
    ends = {TopicPartition(topic, 0): WORTH_A_LOOK + 10, TopicPartition(topic, 1): 3}

    records, nbytes = sample_sizes(kafka, {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 3}, ends)

    assert records >= SAMPLE_RECORDS
    assert nbytes == records * 104


def test_nobody_looks_when_little_is_left(settings_for: SettingsFactory, topics: Topics, names: Names) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 1)
    topics.produce(topic, [b"value"] * 20)
    place = TopicPartition(topic, 0)

    assert sample_sizes(kafka, {place: 0}, {place: 20}) == (0, 0)
