"""A topic with the wrong cleanup policy, or none at all: at the start, and changed under a running service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from sweeper.result import RowOutcome
from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import sweeper_of
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.handler import PermanentError, Record
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Settings]
# How soon a producer believes that a topic is gone; by default half a minute after it has heard of it.
NOTED = {"topic.metadata.propagation.max.ms": 2000, "topic.metadata.refresh.interval.ms": 500}
WRONG = r"\.wait: cleanup\.policy is \S+, expected compact.*--add-config cleanup\.policy=compact"


async def take(record: Record) -> None:
    """Accept everything."""


async def give_up(record: Record) -> None:
    raise PermanentError("no")


def test_every_service_refuses_a_wait_topic_that_deletes_by_age(
    scenario: ScenarioFactory, processors: Processors, spark: SparkSession
) -> None:
    from sink.service import SinkService

    at = scenario({"processor.handler": processors.handler(take), "processor.ttl_s": 3600})
    at.topics.produce(at.settings.processor.topics[0], [b"value"])
    at.set_config(at.settings.wait.topic, "cleanup.policy", "compact,delete")
    with pytest.raises(ConfigurationError, match=WRONG):
        processors.start(at.settings).join()
    with pytest.raises(ConfigurationError, match=WRONG):
        SinkService(at.settings, spark, once=True).run()
    with pytest.raises(ConfigurationError, match=WRONG):
        sweeper_of(at.settings).run_once()
    assert at.read_wait() == []
    at.set_config(at.settings.wait.topic, "cleanup.policy", "compact")
    assert processors.run_once(at.settings).settled == {"done": 1}


def test_a_sweeper_ends_when_the_wait_topic_starts_to_delete_by_age(
    scenario: ScenarioFactory,
) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    sweeper = sweeper_of(at.settings)
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    at.register([at.wait_record(2)])
    at.show()
    at.set_config(at.settings.wait.topic, "cleanup.policy", "delete")
    with pytest.raises(ConfigurationError, match=WRONG):
        sweeper.run_once()
    assert len(at.dead_letters()) == 1
    at.set_config(at.settings.wait.topic, "cleanup.policy", "compact")
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    sweeper.close()


@pytest.mark.fault("F14")
def test_a_missing_dead_letter_topic_is_refused_at_the_start(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(take)})
    topics.delete(settings.dead_letter.topic)
    topics.produce(settings.processor.topics[0], [b"value"])
    with pytest.raises(ConfigurationError, match=rf"topic {settings.dead_letter.topic}.*waitreg topics create"):
        processors.start(settings).join()
    assert topics.read(settings.wait.topic) == []


@pytest.mark.fault("F15")
def test_a_deleted_dead_letter_topic_ends_the_processor(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings(
        {"processor.handler": processors.handler(give_up), "processor.max_attempts": 1, "kafka.librdkafka": NOTED}, 1
    )
    topic = settings.processor.topics[0]
    topics.produce(topic, [b"first"])
    running = processors.start(settings)
    wait_until(lambda: running.settled == {"dead_lettered": 1}, what="the first dead letter")
    topics.delete(settings.dead_letter.topic)
    topics.produce(topic, [b"second"])
    # What the client calls it depends on how far the dead letter had come.
    with pytest.raises(
        WaitRegistryError, match=rf"writing the dead letter of \S+ to {settings.dead_letter.topic} failed"
    ):
        running.join(90)
    open_ones = [origin for origin, story in stories(topics.read(settings.wait.topic)).items() if not story.resolved]
    assert open_ones == [(topic, 0, 1)]


@pytest.mark.fault("F18")
def test_a_deleted_input_topic_is_warned_about(
    processor_settings: Make, topics: Topics, processors: Processors, caplog: pytest.LogCaptureFixture
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(take)}, 1)
    removed = settings.processor.topics[0]
    other = topics.create(f"{removed}.other", 1)
    both = settings.model_copy(update={"processor": settings.processor.model_copy(update={"topics": (removed, other)})})
    topics.produce(removed, [b"value"] * 3)
    running = processors.start(both)
    wait_until(lambda: running.done == 3, what="all records")
    topics.delete(removed)
    wait_until(lambda: "topic does not exist" in caplog.text, 90, "a warning")
    topics.produce(other, [b"value"] * 2)
    wait_until(lambda: running.done == 5, 90, "the records of the other topic")
    running.stop()
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 5
    assert all(story.resolved for story in told.values())


@pytest.mark.fault("F19")
@pytest.mark.timeout(240)
def test_a_deleted_wait_topic_ends_the_processor_and_loses_no_record(
    processor_settings: Make, topics: Topics, processors: Processors, database: Database
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(take)}, 1)
    topics.produce(settings.processor.topics[0], [b"before"])
    running = processors.start(settings)
    wait_until(lambda: running.done == 1, what="the first record")
    topics.delete(settings.wait.topic)
    topics.produce(settings.processor.topics[0], [b"after"])
    with pytest.raises(ConfigurationError, match=settings.wait.topic):
        running.join(120)
