"""Where a group begins, and when it refuses to (P8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.integration.processor.running import Processors
from tests.support.committed_offsets import commit_as_operator, committed
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.handler import Record
from wait_registry.kafka.topics import create_topics
from wait_registry.settings.root import Settings

Make = Callable[..., Settings]


class Seen:
    """A handler that remembers offsets."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    async def __call__(self, record: Record) -> None:
        self.offsets.append(record.offset)


@pytest.mark.guarantee("P8.2")
@pytest.mark.fault("F21")
def test_a_position_outside_the_log_ends_the_process_with_the_fix(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(Seen())}, 1)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"value"] * 3)
    commit_as_operator(topics.bootstrap, group, [TopicPartition(topic, 0, 100)])
    with pytest.raises(PermanentError, match=rf"position 100 of {topic}\[0\] is not in the log.*--reset-offsets"):
        processors.start(settings).join()
    assert committed(topics.bootstrap, group, topic, 1) == [100], "nothing is decided for the operator"


def test_an_operators_position_is_respected(processor_settings: Make, topics: Topics, processors: Processors) -> None:
    seen = Seen()
    settings = processor_settings({"processor.handler": processors.handler(seen)}, 1)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"value"] * 5)
    commit_as_operator(topics.bootstrap, group, [TopicPartition(topic, 0, 3)])
    processors.run_once(settings)
    assert sorted(seen.offsets) == [3, 4]


@pytest.mark.guarantee("P1.8")
@pytest.mark.fault("F20")
def test_a_recreated_or_resized_wait_topic_stops_its_group(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(Seen())}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    processors.run_once(settings)

    admin = AdminClient({"bootstrap.servers": topics.bootstrap})
    admin.create_partitions([NewPartitions(settings.wait.topic, 6)])[settings.wait.topic].result(15)
    processors.run_once(settings)
    otherwise = settings.model_copy(update={"wait": settings.wait.model_copy(update={"partitions": 6})})
    with pytest.raises(ConfigurationError, match=r"has been used with 4 partitions, but wait\.partitions is now 6"):
        processors.start(otherwise).join()

    topics.delete(settings.wait.topic)
    create_topics(settings)
    with pytest.raises(ConfigurationError, match="was recreated"):
        processors.start(settings).join()


def test_a_new_wait_topic_of_another_name_may_follow(
    processor_settings: Make, topics: Topics, processors: Processors, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    settings = processor_settings({"processor.handler": processors.handler(seen)}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    processors.run_once(settings)
    grown = settings.model_copy(
        update={"wait": settings.wait.model_copy(update={"topic": f"{settings.wait.topic}2", "partitions": 6})}
    )
    create_topics(grown)
    topics.produce(settings.processor.topics[0], [b"value"])
    processors.run_once(grown)
    assert seen.offsets == [0, 1]
    assert "Keep a sweeper on the old topic until it is empty" in caplog.text


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"processor.handler": "no_such_module:handle"}, "no_such_module"),
        ({"processor.topics": ("no-such-topic",)}, "no-such-topic"),
    ],
)
def test_wrong_settings_are_refused_before_the_first_poll(
    overrides: dict[str, object], said: str, settings_for: Make, topics: Topics, processors: Processors
) -> None:
    settings = settings_for({"processor.handler": processors.handler(Seen()), **overrides})
    create_topics(settings)
    with pytest.raises(ConfigurationError, match=said):
        processors.start(settings).join()
