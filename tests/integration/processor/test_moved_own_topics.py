"""Own topics that are missing, moved, emptied or created anew by others: nothing is lost or stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from processor.intake import absent_topics, broker_watch
from processor.writing import emptied_topics
from tests.integration.processor.scenario import PROTOCOLS, ProcessorScenario, ScenarioFactory, accepts
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record, TransientError
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.topics import create_topics
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.topics import retry_topic

STEPS_S = (1, 3600)
DELAYS = {"processor.retry.delays": ("1s", "1h")}
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


def commit_elsewhere(at: ProcessorScenario, topic: str, keeps: bool) -> None:
    """Commit the ends of a topic, without metadata or with that of the offsets before."""
    consumer = Consumer({"bootstrap.servers": at.topics.bootstrap, "group.id": at.group})
    until = ends(at, topic)
    offsets = [TopicPartition(topic, number) for number in until]
    if keeps:
        offsets = consumer.committed(offsets, timeout=10)
    for each in offsets:
        each.offset = until[each.partition]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def fail_and_stop(at: ProcessorScenario, passes: int) -> None:
    """Have records wait in the last retry topic; what they left in the first one is deleted, as its own emptying."""
    at.produce([b"value"] * COUNT)
    running = at.start()
    first = partial(begins, at, retry_topic(at.topic, at.group, STEPS_S[0]))
    wait_until(lambda: sum(first().values()) == passes * COUNT, what="the emptying of the first retry topic")
    running.stop()


@pytest.mark.guarantee("P1.40")
@pytest.mark.parametrize("keeps", [False, True])
def test_what_another_program_passed_is_kept_in_each_later_start(
    keeps: bool, processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(fails, 1, DELAYS, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    fail_and_stop(at, 1)
    commit_elsewhere(at, waiting, keeps)
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
    at = processor_scenario(fails, 1, DELAYS, max_attempts=1)
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
    at = processor_scenario(fails, 1, DELAYS, max_attempts=1)
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
    at = processor_scenario(fails, 1, DELAYS, max_attempts=1)
    waiting = retry_topic(at.topic, at.group, STEPS_S[1])
    running = at.start().wait_joined()
    at.topics.configure(waiting, "message.timestamp.type", "CreateTime")
    at.produce([b"value"] * COUNT)
    wait_until(lambda: f"the retry topic {waiting} have timestamps of their producers" in caplog.text, what="a warning")
    running.stop()


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent_topics, "LOOK_EVERY_S", 0.5)


def redelivered(at: ProcessorScenario, offset: int) -> Outgoing:
    """Return what a redrive sends of the dead letter of an input record."""
    first = "00000000-0000-8000-8000-000000000001"
    lineage = Lineage(at.topic, 7, offset, 1_700_000_000_000, "create", first, 1, 2, at.group, "i", 2)
    return Outgoing(b"again", b"key", redelivery_headers((), lineage))


@pytest.mark.guarantee("R1.10")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_appears_is_consumed_from_its_beginning(
    protocol: str, processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    deliveries: Counter[tuple[int, int, int]] = Counter()

    async def counts(record: Record) -> None:
        deliveries[record.partition, record.offset, record.delivery] += 1

    at = processor_scenario(counts, 4, **PROTOCOLS[protocol])
    again = at.of_the_input_alone().again
    both = [at.start().wait_joined() for _ in range(2)]
    assert f"without READ for this user: {again}" in caplog.text
    written = at.produce_to_each(3)
    wait_until(lambda: sum(one.done for one in both) == written, what="the input's records")
    assert create_topics(at.settings) == [again]
    at.topics.produce(again, [redelivered(at, offset) for offset in range(5)])
    wait_until(lambda: sum(one.done for one in both) == written + 5, what="the redelivered records")
    written += at.produce_to_each(3)
    wait_until(lambda: sum(one.done for one in both) == written + 5, what="more of the input's records")
    for one in both:
        one.stop()
    assert set(deliveries.values()) == {1}
    assert committed(at.topics.bootstrap, at.group, again, 1) == [5]
    at.resolved_stories(written + 5)


def test_once_is_over_without_the_topic(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1).of_the_input_alone()
    at.produce([b"value"])
    assert at.run_once().done == 1


def test_a_group_whose_policy_redelivers_needs_the_topic(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, expiry_policy="redeliver").of_the_input_alone()
    with pytest.raises(ConfigurationError, match="the redelivery topic is missing"):
        at.run_once()
