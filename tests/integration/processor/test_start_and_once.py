"""Where a group begins, when it refuses to (P8), that lost offsets are reported, and when `--once` ends (KIP-848)."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from processor.intake import stop_at_ends as once
from tests.integration.doctor.findings import look
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import Counts, Gate, ProcessorScenario, ScenarioFactory, accepts, scenarios_on
from tests.support.committed_offsets import commit_as_operator
from tests.support.kafka_io import group_member
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.waiting import holds, wait_until
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.handler import Record, TransientError
from wait_registry.kafka.topics import create_topics
from waitreg.local.stack import EmbeddedStack


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


def test_another_wait_topic_may_follow(processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture) -> None:
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


LOST = "its offsets expired or were deleted"


async def fails_once(record: Record) -> None:
    if record.delivery == 1:
        raise TransientError("not yet")


def lose_offsets(at: ProcessorScenario) -> None:
    """Delete the group, as the broker does with the offsets of an empty one after offsets.retention.minutes."""
    admin = AdminClient({"bootstrap.servers": at.topics.bootstrap})
    admin.delete_consumer_groups([at.group])[at.group].result(60)


@pytest.mark.parametrize(
    ("handler", "own", "sign"),
    [
        (accepts, {}, "waitreg.wait has registrations of it"),
        (
            fails_once,
            {"registration": "off", "max_attempts": 1, "others": {"processor.retry.delays": ("1s",)}},
            ".retry.1s has had records",
        ),
    ],
)
def test_a_group_that_lost_its_offsets_is_warned_of(
    handler: Any, own: dict[str, Any], sign: str, processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(handler, 2, **own)
    at.produce_to_each(3)
    assert look(at.settings, "processor").standing("group.offsets") is Severity.WARNING
    at.run_once()
    assert LOST not in caplog.text, "a new group"
    lose_offsets(at)
    [line] = [line for line in look(at.settings, "processor").of("group.offsets") if LOST in line.message]
    assert line.severity is Severity.WARNING
    at.run_once()
    [said] = [line for line in caplog.messages if LOST in line]
    for text in (line.message, said):
        assert f"{at.topic}[0], {at.topic}[1] begin at the beginning, and up to 6 records are handled again" in text
        assert sign.replace("waitreg.wait", at.settings.wait.topic) in text
    assert "waitreg rewind" in said


def test_added_partitions_lost_no_offset(processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture) -> None:
    at = processor_scenario(partitions=1)
    at.produce_to_each(2)
    at.run_once()
    admin = AdminClient({"bootstrap.servers": at.topics.bootstrap})
    admin.create_partitions([NewPartitions(at.topic, 2)])[at.topic].result(60)
    wait_until(lambda: len(admin.list_topics(at.topic).topics[at.topic].partitions) == 2, what="the new partition")
    at.produce([b"more"])
    at.run_once()
    assert LOST not in caplog.text


# A dead member's partitions are taken back after twelve seconds, when another has long joined.
QUICK_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "12000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
}


@pytest.mark.guarantee("P4.18")
def test_once_does_not_end_while_records_are_unfinished(processor_scenario: ScenarioFactory) -> None:
    gate = Gate()
    at = processor_scenario(gate, 1, max_in_flight=2)
    at.produce([b"value"] * 6)
    running = at.start(once=True)
    wait_until(lambda: running.stats.registered == 6 and len(gate.calls) == 2, what="records that wait for a slot")
    holds(lambda: "draining" not in running.health.reasons, 1.0, "no drain with unfinished records")
    gate.opened.set()
    running.join()
    at.resolved_stories(6)


def test_it_waits_for_the_partitions_of_a_dead_member(names: Names, services: Services, processors: Processors) -> None:
    with EmbeddedStack(broker_properties=QUICK_SESSIONS, postgres_settings={"fsync": "off"}) as stack:
        handler = "tests.integration.processor.scenario:accepts"
        make = scenarios_on(stack, names, processors)
        at = make(handler, 1, group_protocol="consumer", commit_interval_s=0.1)
        dead = services.start("processor", at.settings).wait_ready()
        at.produce([b"first"])
        wait_until(lambda: at.committed() == [1], what="the commit of the first record")
        dead.kill()
        at.produce([b"value"] * 5)
        assert at.run_once().settled == {"done": 5}
        assert at.committed() == [6], "all that stood there, although a dead one had it"


def test_it_says_what_it_leaves_to_a_member_that_is_alive(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(partitions=1, group_protocol="consumer")
    at.produce([b"value"] * 3)
    monkeypatch.setattr(once, "ALIVE_AFTER_S", 2.0)
    alive = group_member(at.topics.bootstrap, at.group, [at.topic])
    with closing(alive):
        wait_until(lambda: alive.poll(0.1) is None and alive.assignment(), what="the other one's partition")
        running = at.run_once()
    assert running.settled == {}
    assert f"not processed here, but by live members of the group: {at.topic}[0] by " in caplog.text
