"""P7: before a sink asks for a batch it knows how large the records are that come next."""

from __future__ import annotations

import pytest

from sink.position import TopicPartition
from sink.sampling import SAMPLE_RECORDS, Sample, sample_sizes
from tests.conftest import SettingsFactory
from tests.integration.sink.test_the_view_is_the_logs_truth import transaction
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics

KEY, VALUE, HEADER = b"k" * 10, b"v" * 80, ("name", b"12345.")
MIB = 1024 * 1024


def test_sizes_are_those_of_the_records_from_the_position_on(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 2)
    large = [Outgoing(b"v" * 5_000, partition=0)] * 10
    topics.produce(topic, [*large, *[Outgoing(VALUE, KEY, (HEADER, ("null", None)), 0)] * (SAMPLE_RECORDS + 1_000)])
    topics.produce(topic, [Outgoing(b"read already", partition=1)] * 3)
    ends = {TopicPartition(topic, 0): SAMPLE_RECORDS + 1_010, TopicPartition(topic, 1): 3}
    at = {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 3}

    sample = sample_sizes(kafka, at, ends, harmless=32, max_bytes=64 * MIB)

    assert sample.records >= SAMPLE_RECORDS
    assert sample.nbytes == sample.records * 104
    assert not sample.whole


def test_nobody_looks_when_what_is_left_is_harmless_whatever_its_size(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 1)
    topics.produce(topic, [b"value"] * 20)
    at, ends = {TopicPartition(topic, 0): 0}, {TopicPartition(topic, 0): 20}

    assert sample_sizes(kafka, at, ends, harmless=20, max_bytes=64 * MIB) == Sample(0, 0, whole=True)
    assert sample_sizes(kafka, at, ends, harmless=19, max_bytes=64 * MIB) == Sample(20, 20 * 5, whole=True)


def test_a_look_ends_when_it_has_seen_as_much_as_a_batch_holds(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 1)
    topics.produce(topic, [bytes(100_000)] * 200)
    at, ends = {TopicPartition(topic, 0): 0}, {TopicPartition(topic, 0): 200}

    sample = sample_sizes(kafka, at, ends, harmless=2, max_bytes=MIB)

    assert (sample.records < 200, sample.nbytes >= MIB, sample.whole) == (True, True, False)


@pytest.mark.guarantee("P7.7")
def test_the_mean_is_that_of_a_batch_which_takes_of_each_partition_what_it_has_left(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, small, large = settings_for().kafka, topics.create(names("small"), 1), topics.create(names("large"), 1)
    topics.produce(small, [bytes(100)] * 4_000)
    topics.produce(large, [bytes(20_000)] * 1_000)
    at = {TopicPartition(small, 0): 0, TopicPartition(large, 0): 0}
    ends = {TopicPartition(small, 0): 4_000, TopicPartition(large, 0): 1_000}

    sample = sample_sizes(kafka, at, ends, harmless=32, max_bytes=64 * MIB)

    # A fifth of the offsets are those of large records.
    assert round(sample.nbytes / sample.records) == (4 * 100 + 20_000) / 5
    assert sample.records >= SAMPLE_RECORDS


def test_a_partition_with_nothing_but_the_markers_of_transactions_left_counts_as_seen(
    settings_for: SettingsFactory, topics: Topics, names: Names
) -> None:
    kafka, topic = settings_for().kafka, topics.create(names("wait"), 2)
    topics.produce(topic, [Outgoing(bytes(80), partition=1)] * 100)
    with transaction(topics, topic, commit=False) as producer:
        producer.produce(topic, b"never was", partition=0)
    at = {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}
    ends = {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 100}

    assert sample_sizes(kafka, at, ends, harmless=1, max_bytes=64 * MIB) == Sample(100, 8_000, whole=True)
