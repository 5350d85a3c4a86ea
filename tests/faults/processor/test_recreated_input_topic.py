"""P1, P8: a position in a recreated input topic is never used: that would skip records.

The client continues at its old offset in the new log, and under the classic protocol a member isn't notified. The
broker refuses only if the new log is shorter.
"""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import TopicPartition

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory
from tests.support.committed_offsets import commit_as_operator
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.telemetry.metrics import PROCESSOR_PAUSED

# Or the client may look when there is no topic of that name.
RARE_LOOKS = {"kafka.librdkafka": {"topic.metadata.refresh.interval.ms": 600_000}}
NEW = [b"new %d" % number for number in range(50)]


class BlocksAtFirst:
    """A handler that remembers what it gets, and returns when it may."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.values: list[bytes | None] = []

    def __call__(self, record: Record) -> None:
        self.values.append(record.value)
        self.release.wait(60)

    def has_seen_all_new(self) -> bool:
        return {value for value in self.values if value is not None} >= set(NEW)


def start_on_a_topic_and_recreate_it(at: ProcessorScenario) -> RunningProcessor:
    """Start a processor; when it is paused, and so fetches nothing, put a longer log in the place of the old one."""
    at.produce([b"old %d" % number for number in range(20)])
    running = at.start()
    wait_until(lambda: running.values(PROCESSOR_PAUSED) == [1], what="the pause")
    # A commit on its way would be one of the new log.
    wait_until(lambda: is_all_committed(running), what="the commit of what was polled")
    at.topics.delete(at.topic)
    at.topics.create(at.topic, 1)
    at.produce(NEW)
    return running


def is_all_committed(running: RunningProcessor) -> bool:
    partitions = running.service.parts.loop.engine.partitions.values()  # type: ignore[union-attr]
    return all(partition.confirmed == partition.position for partition in partitions)


@pytest.mark.guarantee("P8.6")
@pytest.mark.fault("F32")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_running_processor_ends_and_the_next_one_starts_over(
    protocol: str, faulty_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.intake.broker_watch.IDENTITY_EVERY_S", 0.5)
    handler = BlocksAtFirst()
    at = faulty_scenario(handler, 1, RARE_LOOKS, max_in_flight=1, prefetch_max=2, group_protocol=protocol)
    running = start_on_a_topic_and_recreate_it(at)
    try:
        wait_until(lambda: running.service.fault.error, 30, what="the watch's notice")
    finally:
        handler.release.set()
    # On a busy machine the client may look in between, when there is no topic of that name.
    expected = r"was recreated.*waitreg rewind --to-earliest|Subscribed topic not available"
    with pytest.raises(ConfigurationError, match=expected):
        running.join()
    assert at.committed() == [-1], "nothing of the old log's offsets"
    at.run_once()
    assert handler.has_seen_all_new()


@pytest.mark.guarantee("P8.6")
@pytest.mark.fault("F33")
def test_offsets_of_the_deleted_topic_stop_the_next_start(faulty_scenario: ScenarioFactory) -> None:
    handler = BlocksAtFirst()
    at = faulty_scenario(handler, 1, RARE_LOOKS, max_in_flight=1, prefetch_max=2)
    running = start_on_a_topic_and_recreate_it(at)
    handler.release.set()
    wait_until(lambda: handler.values[-1] == NEW[-1], what="the end of the new log")
    running.stop()
    assert not handler.has_seen_all_new(), "the client continues at its old position"
    with pytest.raises(ConfigurationError, match=r"was recreated.*waitreg rewind --to-earliest"):
        at.start().join(60)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, 0, 0)])
    at.run_once()
    assert handler.has_seen_all_new()
