"""Where a group begins, and when it refuses to (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from tests.integration.processor.scenario import Counts, ScenarioFactory
from tests.support.committed_offsets import commit_as_operator
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.kafka.topics import create_topics


@pytest.mark.guarantee("P8.2")
@pytest.mark.fault("F21")
def test_a_position_outside_the_log_ends_the_process_with_the_fix(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(partitions=1)
    at.produce([b"value"] * 3)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, 0, 100)])
    with pytest.raises(PermanentError, match=rf"position 100 of {at.topic}\[0\] is not in the log.*waitreg rewind"):
        at.start().join()
    assert at.committed() == [100], "nothing is decided for the operator"


def test_each_assigned_partition_that_retention_has_overtaken_is_named(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(partitions=4)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, number, 100) for number in (0, 2, 3)])
    with pytest.raises(PermanentError, match="is not in the log") as ended:
        at.start().join()
    named = {
        (f"{at.topic}[{first}]", f"{at.topic}[{others}]") for first, others in ((0, "2-3"), (2, "0, 3"), (3, "0, 2"))
    }
    assert any(
        f"of {first} is" in str(ended.value) and f"holds for {others}." in str(ended.value) for first, others in named
    )
    assert "`waitreg rewind --to-earliest --only-outside-log`" in str(ended.value)


def test_an_operators_position_is_respected(processor_scenario: ScenarioFactory) -> None:
    seen = Counts()
    at = processor_scenario(seen, 1)
    at.produce([b"value"] * 5)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, 0, 3)])
    at.run_once()
    assert seen.calls == {(0, 3): 1, (0, 4): 1}


@pytest.mark.guarantee("P1.8")
@pytest.mark.fault("F20")
def test_a_recreated_or_resized_wait_topic_stops_its_group(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(partitions=1)
    at.produce([b"value"])
    at.run_once()

    wait_topic = at.settings.wait.topic
    at.topics.grow(wait_topic, 6)
    at.run_once()
    with pytest.raises(ConfigurationError, match=r"has been used with 4 partitions, but wait\.partitions is now 6"):
        at.changed("wait", partitions=6).start().join()

    at.topics.delete(wait_topic)
    create_topics(at.settings)
    with pytest.raises(ConfigurationError, match="was recreated"):
        at.start().join()


def test_a_new_wait_topic_of_another_name_may_follow(
    processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Counts()
    at = processor_scenario(seen, 1)
    at.produce([b"value"])
    at.run_once()
    grown = at.changed("wait", topic=f"{at.settings.wait.topic}2", partitions=6)
    create_topics(grown.settings)
    at.produce([b"value"])
    grown.run_once()
    assert seen.calls == {(0, 0): 1, (0, 1): 1}
    assert "Keep a sweeper on the old topic until it is empty" in caplog.text
