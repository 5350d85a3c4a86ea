"""Other programs move offsets of retry topics, delete their records, or create them anew: nothing is lost or stuck."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from processor.intake import broker_watch
from processor.settlement import emptied_topics
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory
from tests.support.waiting import wait_until
from wait_registry.handler import Record, TransientError
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.records.topics import retry_topic

STEPS_S = (1, 3600)
LADDER = {"processor.retry.delays": ("1s", "1h")}
COUNT = 5


async def fails(record: Record) -> None:
    raise TransientError("not now")


@pytest.fixture(autouse=True)
def _emptied_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emptied_topics, "FIRST_S", 0.2)
    monkeypatch.setattr(emptied_topics, "EVERY_S", 0.2)


def ends(at: ProcessorScenario, topic: str) -> dict[int, int]:
    return end_offsets(at.topics.admin, topic, range(at.settings.dead_letter.partitions))


def begins(at: ProcessorScenario, topic: str) -> dict[int, int]:
    return earliest_offsets(at.topics.admin, topic, range(at.settings.dead_letter.partitions))


def commit_elsewhere(at: ProcessorScenario, topic: str) -> None:
    """Commit the ends of a topic as any tool does, without metadata."""
    consumer = Consumer({"bootstrap.servers": at.topics.bootstrap, "group.id": at.group})
    consumer.commit(offsets=[TopicPartition(topic, *end) for end in ends(at, topic).items()], asynchronous=False)
    consumer.close()


def fail_and_stop(at: ProcessorScenario, passes: int) -> None:
    """Have records wait in the last retry topic; what they left in the first one is deleted, as its own emptying."""
    at.produce([b"value"] * COUNT)
    running = at.start()
    first = partial(begins, at, retry_topic(at.topic, at.group, STEPS_S[0]))
    wait_until(lambda: sum(first().values()) == passes * COUNT, what="the emptying of the first retry topic")
    running.stop()


@pytest.mark.guarantee("P1.40")
def test_what_another_program_passed_is_kept_in_each_later_start(
    processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(fails, 1, LADDER, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    fail_and_stop(at, 1)
    commit_elsewhere(at, waiting)
    for passes in (2, 3):
        caplog.clear()
        fail_and_stop(at, passes)
        assert sum(begins(at, waiting).values()) == 0
        assert "holds records before" in caplog.text
    assert len(at.topics.read(waiting)) == 3 * COUNT


def delete(at: ProcessorScenario, topic: str) -> None:
    """Delete all records of a topic, as `kafka-delete-records` does."""
    until = [TopicPartition(topic, *end) for end in ends(at, topic).items()]
    for future in at.topics.admin.delete_records(until).values():
        future.result()


def recreate(at: ProcessorScenario, topic: str) -> None:
    at.topics.delete(topic)
    at.topics.create_own(at.settings, at.partitions)


@pytest.mark.guarantee("P1.41")
@pytest.mark.parametrize("change", [delete, recreate])
def test_a_retry_topic_that_was_emptied_or_recreated_stops_nobody(
    processor_scenario: ScenarioFactory, change: Callable[[ProcessorScenario, str], None]
) -> None:
    at = processor_scenario(fails, 1, LADDER, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    fail_and_stop(at, 1)
    change(at, waiting)
    fail_and_stop(at, 2)
    assert len(at.topics.read(waiting)) == COUNT


@pytest.mark.guarantee("P1.41")
@pytest.mark.parametrize("change", [delete, recreate])
def test_neither_does_one_that_is_emptied_or_recreated_under_a_running_processor(
    processor_scenario: ScenarioFactory,
    change: Callable[[ProcessorScenario, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_watch, "IDENTITY_EVERY_S", 1.0)
    at = processor_scenario(fails, 1, LADDER, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    at.produce([b"value"] * COUNT)
    running = at.start()
    wait_until(lambda: len(at.topics.read(waiting)) == COUNT, what="records that wait for an hour")
    change(at, waiting)
    at.produce([b"value"] * COUNT)
    wait_until(lambda: running.settled.get("retried") == 4 * COUNT, what="the next records in the same topic")
    assert len(at.topics.read(waiting)) == COUNT
    running.stop()


def test_a_retry_topic_whose_timestamp_type_is_changed_under_a_processor_is_warned_of(
    processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(fails, 1, LADDER, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    running = at.start().wait_joined()
    at.topics.configure(waiting, "message.timestamp.type", "CreateTime")
    at.produce([b"value"] * COUNT)
    wait_until(lambda: f"the retry topic {waiting} have timestamps of their producers" in caplog.text, what="a warning")
    running.stop()
