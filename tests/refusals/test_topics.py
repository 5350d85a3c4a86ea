"""Topics and features of the broker that a start refuses, and topics that are deleted later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sweeper.result import RowOutcome
from tests.conftest import SettingsFactory
from tests.integration.doctor.findings import look
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import ScenarioFactory as ProcessorScenarioFactory
from tests.integration.processor.scenario import accepts
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import sweeper_of
from tests.support.settings import with_broker
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.handler import PermanentError, Record
from wait_registry.kafka.broker_rules import PROTOCOLS
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How soon a producer believes that a topic is gone; by default half a minute after it has heard of it.
NOTED = {"topic.metadata.propagation.max.ms": 2000, "topic.metadata.refresh.interval.ms": 500}
WRONG = r"\.wait: cleanup\.policy is \S+, expected compact.*--add-config cleanup\.policy=compact"


async def give_up(record: Record) -> None:
    raise PermanentError("no")


def test_every_service_refuses_a_wait_topic_that_deletes_by_age(
    scenario: ScenarioFactory, processors: Processors, spark: SparkSession
) -> None:
    from sink.service import SinkService

    at = scenario({"processor.handler": processors.handler(accepts), "processor.ttl_s": 3600})
    at.topics.produce(at.settings.processor.topics[0], [b"value"])
    at.topics.configure(at.settings.wait.topic, "cleanup.policy", "compact,delete")
    with pytest.raises(ConfigurationError, match=WRONG):
        processors.start(at.settings).join()
    with pytest.raises(ConfigurationError, match=WRONG):
        SinkService(at.settings, spark, once=True).run()
    with pytest.raises(ConfigurationError, match=WRONG):
        sweeper_of(at.settings).run_once()
    assert at.read_wait() == []
    at.topics.configure(at.settings.wait.topic, "cleanup.policy", "compact")
    assert processors.run_once(at.settings).settled == {"done": 1}


def test_a_sweeper_ends_when_the_wait_topic_starts_to_delete_by_age(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.due()
    sweeper = sweeper_of(at.settings)
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    at.due([at.wait_record(2)])
    at.topics.configure(at.settings.wait.topic, "cleanup.policy", "delete")
    with pytest.raises(ConfigurationError, match=WRONG):
        sweeper.run_once()
    assert len(at.dead_letters()) == 1
    at.topics.configure(at.settings.wait.topic, "cleanup.policy", "compact")
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    sweeper.close()


@pytest.mark.fault("F14")
@pytest.mark.parametrize("kind", ["dead letter", "input"])
def test_a_missing_topic_is_refused_at_the_start(processor_scenario: ProcessorScenarioFactory, kind: str) -> None:
    at = processor_scenario()
    settings = at.settings
    missing = settings.dead_letter.topic if kind == "dead letter" else settings.processor.topics[0]
    at.topics.delete(missing)
    with pytest.raises(ConfigurationError, match=rf"topic {missing}.*waitreg topics create"):
        at.start().join()
    assert at.stories() == {}


@pytest.mark.guarantee("P8.1")
@pytest.mark.fault("F15")
def test_a_deleted_dead_letter_topic_ends_the_processor(processor_scenario: ProcessorScenarioFactory) -> None:
    at = processor_scenario(give_up, 1, {"kafka.librdkafka": NOTED}, max_attempts=1)
    letters = at.settings.dead_letter.topic
    at.produce([b"first"])
    running = at.start()
    wait_until(lambda: running.settled == {"dead_lettered": 1}, what="the first dead letter")
    at.topics.delete(letters)
    at.produce([b"second"])
    # What the client calls it depends on how far the dead letter had come.
    with pytest.raises(WaitRegistryError, match=rf"writing the dead letter of \S+ to {letters} failed"):
        running.join(90)
    assert [offset for offset, story in at.by_offset().items() if not story.resolved] == [1]


@pytest.mark.fault("F18")
def test_a_deleted_input_topic_is_warned_about(
    processor_scenario: ProcessorScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(partitions=1)
    other = at.topics.create(f"{at.topic}.other", 1)
    at.produce([b"value"] * 3)
    running = at.changed("processor", topics=(at.topic, other)).start()
    wait_until(lambda: running.done == 3, what="all records")
    at.topics.delete(at.topic)
    wait_until(lambda: f"topic {at.topic} doesn't exist any more" in caplog.text, 90, "a warning")
    at.topics.produce(other, [b"value"] * 2)
    wait_until(lambda: running.done == 5, 90, "the records of the other topic")
    running.stop()
    at.resolved_stories(5)


@pytest.mark.fault("F18")
def test_an_input_topic_deleted_under_load_does_not_stop_the_others(
    processor_scenario: ProcessorScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(partitions=1)
    other = at.topics.create(f"{at.topic}.other", 1)
    running = at.changed("processor", topics=(at.topic, other)).start().wait_joined()
    # Records of it are in flight at any time, and so are commits.
    at.produce([b"value"] * 20_000)
    wait_until(lambda: running.done >= 500, what="the first records")
    at.topics.delete(at.topic)
    at.topics.produce(other, [b"value"] * 2)
    wait_until(lambda: f"commit of {at.topic}[0] failed" in caplog.text, 90, "a refused commit")
    wait_until(lambda: running.stats.consumed[other] == 2, 90, "the records of the other topic")
    running.stop()
    committed = at.changed("processor", topics=(other,))
    wait_until(lambda: committed.committed() == [2], what="their commit")


@pytest.mark.fault("F19")
@pytest.mark.timeout(240)
def test_a_deleted_wait_topic_ends_the_processor_without_loss(processor_scenario: ProcessorScenarioFactory) -> None:
    at = processor_scenario(partitions=1)
    at.produce([b"before"])
    running = at.start()
    wait_until(lambda: running.done == 1, what="the first record")
    at.topics.delete(at.settings.wait.topic)
    at.produce([b"after"])
    # Said by the watch over the topics, or by the write of the next wait record, whichever comes first.
    with pytest.raises(WaitRegistryError, match=at.settings.wait.topic):
        running.join(120)


@pytest.fixture
def classic_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker with the classic group protocol only."""
    first, second = free_ports(2)
    properties = {PROTOCOLS: "classic"}
    broker = EmbeddedBroker(tmp_path / "broker", (first, second), properties=properties, temporary=True)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def test_a_group_protocol_that_is_off_is_refused(
    classic_broker: EmbeddedBroker,
    settings_for: SettingsFactory,
    processors: Processors,
    caplog: pytest.LogCaptureFixture,
) -> None:
    overrides = {"processor.group_protocol": "consumer", "processor.handler": processors.handler(accepts)}
    settings = with_broker(settings_for(overrides), classic_broker.bootstrap_servers)
    Topics(classic_broker.bootstrap_servers).create_own(settings)
    with pytest.raises(ConfigurationError, match=rf"{PROTOCOLS} is classic.*group_protocol to .classic."):
        processors.start(settings).join()
    assert "kafka.group_protocol" in look(settings, "processor").broken
    working = settings.model_copy(
        update={
            "processor": settings.processor.model_validate(
                {**settings.processor.model_dump(), "group_protocol": "classic"}
            )
        }
    )
    caplog.set_level("INFO")
    processors.run_once(working)
    assert "Kafka version: Kafka 4.2; features: " in caplog.text
