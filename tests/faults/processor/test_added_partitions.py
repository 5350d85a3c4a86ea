"""Partitions added while a processor runs: an input's are consumed whole, the wait topic's stay unused."""

from __future__ import annotations

import pytest

from tests.faults.processor.observation import Observation
from tests.integration.processor.scenario import Counts, ScenarioFactory, numbers
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError

AT_FIRST, THEN = 2, 5


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the topics' identities every half second."""
    monkeypatch.setattr("processor.intake.broker_watch.IDENTITY_EVERY_S", 0.5)


@pytest.mark.fault("F34")
@pytest.mark.usefixtures("quick_watch")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_added_to_an_input_are_read_from_their_start(
    protocol: str, faulty_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Counts()
    at = faulty_scenario(handler, AT_FIRST, group_protocol=protocol)
    with Observation(at.topics, at.settings) as seen:
        running = at.start()
        seen.publish_each(b"before")
        wait_until(lambda: len(handler.calls) == AT_FIRST, what="the first records")
        at.topics.grow(at.topic, THEN)
        early = [seen.publish_each(b"early") for _ in range(10)]
        assert (THEN - 1, 0) in early[0], "it is there before anybody consumes it"
        wait_until(lambda: set(handler.calls) == set(seen.published), what="all records of all partitions")
        wait_until(lambda: f"{at.topic} has {THEN} partitions now, it had {AT_FIRST}" in caplog.text, what="a warning")
        running.stop()
        seen.publish_each(b"later")
        at.run_once()
    found = seen.judge(handler.calls)
    assert all(story.outcomes == ["done"] for story in found.values())
    assert set(handler.calls.values()) == {1}, "a new partition is begun once"


@pytest.mark.guarantee("P3.15")
@pytest.mark.fault("F35")
@pytest.mark.usefixtures("quick_watch")
def test_partitions_added_to_the_wait_topic_stay_empty(faulty_scenario: ScenarioFactory) -> None:
    at = faulty_scenario(partitions=1)
    used, wait_topic = at.settings.wait.partitions, at.settings.wait.topic
    with Observation(at.topics, at.settings) as seen:
        running = at.start()
        seen.publish(numbers(20))
        wait_until(lambda: running.done == 20, what="the first records")
        at.topics.grow(wait_topic, 3 * used)
        seen.publish_until(lambda: running.done >= 60, "records after the client has noticed")
        running.stop()
        seen.publish(numbers(20))
        at.run_once()
    found = seen.judge()
    assert all(story.resolved for story in found.values())
    assert {record.partition for record in at.topics.read(wait_topic)} == set(range(used))


@pytest.mark.fault("F36")
@pytest.mark.usefixtures("quick_watch")
def test_a_record_in_an_added_wait_partition_ends_the_processor(faulty_scenario: ScenarioFactory) -> None:
    at = faulty_scenario(partitions=1)
    added = at.settings.wait.partitions
    running = at.start().wait_joined()
    at.topics.grow(at.settings.wait.topic, added + 1)
    at.topics.produce(at.settings.wait.topic, [Outgoing(b"value", b"key", partition=added)])
    said = f"records in partition {added}, expected none beyond wait.partitions = {added}"
    with pytest.raises(ConfigurationError, match=said):
        running.join()
    with pytest.raises(ConfigurationError, match=said):
        at.start().join()
