"""Partitions added while a processor runs: an input's are consumed whole, the wait topic's stay unused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka.admin import NewPartitions

from tests.faults.processor.observation import Observation, Place
from tests.integration.processor.running import Processors
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

AT_FIRST, THEN = 2, 5


def grow(topics: Topics, topic: str, partitions: int) -> None:
    topics.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
    wait_until(lambda: len(topics.admin.list_topics(topic, timeout=30).topics[topic].partitions) == partitions)


@pytest.mark.fault("F34")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_added_to_an_input_are_read_from_their_start(
    protocol: str,
    faulty_settings: Callable[..., Settings],
    faulty_topics: Topics,
    processors: Processors,
) -> None:
    calls: Counter[Place] = Counter()

    async def notes(record: Record) -> None:
        calls[record.partition, record.offset] += 1

    settings = faulty_settings(
        {"processor.handler": processors.handler(notes), "processor.group_protocol": protocol}, AT_FIRST
    )
    with Observation(faulty_topics, settings) as seen:
        running = processors.start(settings)
        seen.publish_each(b"before")
        wait_until(lambda: len(calls) == AT_FIRST, what="the first records")
        grow(faulty_topics, seen.topic, THEN)
        early = [seen.publish_each(b"early") for _ in range(10)]
        assert (THEN - 1, 0) in early[0], "it is there before anybody consumes it"
        wait_until(lambda: set(calls) == set(seen.published), what="all records of all partitions")
        running.stop()
        seen.publish_each(b"later")
        processors.run_once(settings)
    told = seen.judge(calls)
    assert all(story.outcomes == ["done"] for story in told.values())
    assert set(calls.values()) == {1}, "a new partition is begun once"


@pytest.mark.guarantee("P3.15")
@pytest.mark.fault("F35")
def test_partitions_added_to_the_wait_topic_stay_empty_and_stop_no_service(
    faulty_settings: Callable[..., Settings],
    faulty_topics: Topics,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def take(record: Record) -> None:
        pass

    monkeypatch.setattr("processor.broker_watch.IDENTITY_EVERY_S", 0.5)
    settings = faulty_settings({"processor.handler": processors.handler(take)}, 1)
    used, wait_topic = settings.wait.partitions, settings.wait.topic
    with Observation(faulty_topics, settings) as seen:
        running = processors.start(settings)
        seen.publish(b"%d" % number for number in range(20))
        wait_until(lambda: running.done == 20, what="the first records")
        grow(faulty_topics, wait_topic, 3 * used)
        seen.publish_until(lambda: running.done >= 60, "records after the client has noticed")
        running.stop()
        seen.publish(b"%d" % number for number in range(20))
        processors.run_once(settings)
    told = seen.judge()
    assert all(story.resolved for story in told.values())
    assert {record.partition for record in faulty_topics.read(wait_topic)} == set(range(used))


@pytest.mark.fault("F36")
def test_a_partition_added_to_the_wait_topic_ends_the_processor(
    faulty_settings: Callable[..., Settings],
    faulty_topics: Topics,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def take(record: Record) -> None:
        pass

    monkeypatch.setattr("processor.broker_watch.IDENTITY_EVERY_S", 0.5)
    settings = faulty_settings({"processor.handler": processors.handler(take)}, 1)
    added = settings.wait.partitions
    running = processors.start(settings).wait_joined()
    grow(faulty_topics, settings.wait.topic, added + 1)
    faulty_topics.produce(settings.wait.topic, [Outgoing(b"value", b"key", partition=added)])
    said = f"records in partition {added}, expected none beyond wait.partitions = {added}"
    with pytest.raises(ConfigurationError, match=said):
        running.join()
    with pytest.raises(ConfigurationError, match=said):
        processors.start(settings).join()
