"""A replay handles a bounded range again, next to the running group and without a trace in its offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pytest
from confluent_kafka import Producer

from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import (
    PROTOCOLS,
    Counts,
    Gate,
    ProcessorScenario,
    ScenarioFactory,
    scenarios_on,
)
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.running_thread import RunningThread
from tests.support.stack import OwnStack
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError as Stopped
from wait_registry.handler import Record, TransientError
from waitreg.replay.service import ReplayService

Ranges = Mapping[int, tuple[int, int]]
Replay = Callable[[ProcessorScenario, Ranges], "Replaying"]


class Replaying(RunningThread):
    """One replay and its thread."""

    def __init__(self, at: ProcessorScenario, ranges: Ranges) -> None:
        given = {(at.topic, partition): range(*offsets) for partition, offsets in ranges.items()}
        self.service = ReplayService(at.settings, given)
        super().__init__(self.service.run)

    def join(self) -> dict[str, int]:
        """Wait for its end, raise what ended it, and return the outcomes."""
        if (error := self.wait_ended()) is not None:
            raise error
        return dict(self.service.processor.stats.settled)


@pytest.fixture
def replay() -> Iterator[Replay]:
    """Start replays, which are ended with the test."""
    started: list[Replaying] = []

    def start(at: ProcessorScenario, ranges: Ranges) -> Replaying:
        started.append(Replaying(at, ranges))
        return started[-1]

    yield start
    for running in started:
        running.service.request_stop()
        running.thread.join(60)


@pytest.mark.guarantee("P1.33")
@pytest.mark.parametrize("mode", ["eager", "off"])
def test_a_replay_handles_its_range_and_no_more(mode: str, processor_scenario: ScenarioFactory, replay: Replay) -> None:
    counts = Counts()
    at = processor_scenario(counts, 3, registration=mode)
    at.produce_to_each(20)
    at.run_once()
    committed, registered = at.committed(), at.topics.read(at.settings.wait.topic)
    assert replay(at, {0: (3, 7), 1: (15, 20)}).join() == {"done": 9}
    again = {place for place, calls in counts.calls.items() if calls == 2}
    assert again == {(0, offset) for offset in range(3, 7)} | {(1, offset) for offset in range(15, 20)}
    assert set(counts.calls.values()) == {1, 2}
    assert at.committed() == committed
    assert at.topics.read(at.settings.wait.topic) == registered


@pytest.mark.guarantee("P1.33")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_group_keeps_its_partitions(protocol: str, processor_scenario: ScenarioFactory, replay: Replay) -> None:
    gate = Gate(free=40)
    at = processor_scenario(gate, 2, **PROTOCOLS[protocol])
    at.produce_to_each(10)
    group = at.start().wait_joined()
    wait_until(lambda: group.done == 20, what="the group's records")
    rebalances = dict(group.stats.rebalances)
    running = replay(at, {0: (0, 10), 1: (0, 10)})
    at.produce_to_each(15)
    wait_until(lambda: group.done == 40 or len(gate.calls) == 50, what="records of the group and of the replay")
    gate.opened.set()
    assert running.join() == {"done": 20}
    wait_until(lambda: group.done == 50, what="all records of the group")
    assert dict(group.stats.rebalances) == rebalances
    group.stop()
    assert at.committed() == [25, 25]


def test_a_failure_goes_to_the_retry_topic_with_its_key(processor_scenario: ScenarioFactory, replay: Replay) -> None:
    seen: list[Record] = []
    fails = threading.Event()

    async def handle(record: Record) -> None:
        seen.append(record)
        if fails.is_set() and record.delivery == 1:
            raise TransientError("not yet")

    at = processor_scenario(handle, 1, {"processor.retry.delays": ("1s",)}, max_attempts=1)
    at.produce([b"value"])
    group = at.start().wait_joined()
    wait_until(lambda: group.done == 1, what="the first delivery")
    fails.set()
    assert replay(at, {0: (0, 1)}).join() == {"retried": 1}
    wait_until(lambda: group.done == 2, what="the delivery after the delay")
    assert [record.delivery for record in seen] == [1, 1, 2]
    assert len({record.idempotency_key for record in seen}) == 1
    assert at.letters() == []


@pytest.mark.guarantee("P1.34")
def test_a_stopped_replay_names_its_first_unsettled_record(processor_scenario: ScenarioFactory, replay: Replay) -> None:
    gate = Gate(free=5)
    at = processor_scenario(gate, 2, max_in_flight=2, drain_timeout_s=1)
    at.produce([Outgoing(b"value", partition=0)] * 10)
    at.produce([Outgoing(b"value", partition=1)] * 2)
    running = replay(at, {0: (0, 10)})
    wait_until(lambda: len(gate.calls) == 7, what="two calls that wait")
    running.service.request_stop()
    with pytest.raises(Stopped, match=rf"Handle the rest with: waitreg replay {at.topic}:0:5-10"):
        running.join()
    gate.opened.set()
    assert replay(at, {0: (5, 10)}).join() == {"done": 5}
    assert gate.calls.keys() == {(0, offset) for offset in range(10)}


def test_a_range_may_end_with_offsets_of_no_records(processor_scenario: ScenarioFactory, replay: Replay) -> None:
    counts = Counts()
    at = processor_scenario(counts, 1)
    producer = Producer({"bootstrap.servers": at.topics.bootstrap, "transactional.id": at.topic})
    producer.init_transactions(60)
    for commits in (True, False, True):  # offsets 0-1 and a marker, 3-4 aborted and a marker, 6-7 and a marker
        producer.begin_transaction()
        producer.produce(at.topic, b"value")
        producer.produce(at.topic, b"value")
        producer.flush(60)
        (producer.commit_transaction if commits else producer.abort_transaction)(60)
    at.topics.wait_settled(at.topic)
    assert replay(at, {0: (0, 5)}).join() == {"done": 2}
    assert replay(at, {0: (3, 6)}).join() == {}, "no record at all"
    assert replay(at, {0: (7, 9)}).join() == {"done": 1}
    assert counts.calls == {(0, 0): 1, (0, 1): 1, (0, 7): 1}


@pytest.mark.guarantee("D1.2")
def test_records_of_a_delayed_input_wait_for_their_time(processor_scenario: ScenarioFactory, replay: Replay) -> None:
    handled_ms: list[tuple[int, float]] = []

    async def handle(record: Record) -> None:
        handled_ms.append((record.offset, time.time() * 1000))

    at = processor_scenario(handle, 1, delay_s=2)
    began_ms = round(time.time() * 1000)
    at.produce([Outgoing(b"value", timestamp_ms=began_ms - 60_000)] * 3)
    # In the future, so the delay begins with the first poll.
    at.produce([Outgoing(b"value", timestamp_ms=began_ms + 3_600_000)] * 3)
    assert replay(at, {0: (0, 5)}).join() == {"done": 5}
    assert sorted(offset for offset, _ in handled_ms) == [0, 1, 2, 3, 4]
    assert all(at_ms >= began_ms + 2000 for offset, at_ms in handled_ms if offset >= 3)


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F49")
def test_a_replay_waits_for_brokers(own_stack: OwnStack, names: Names, processors: Processors, replay: Replay) -> None:
    gate = Gate(free=50)
    at = scenarios_on(own_stack, names, processors)(gate, 1, max_in_flight=5, prefetch_max=50)
    at.produce([b"value"] * 1500)
    running = replay(at, {0: (0, 1400)})
    wait_until(lambda: len(gate.calls) > 50, what="the first calls")
    own_stack.broker.stop()
    gate.opened.set()
    service = running.service.processor
    wait_until(lambda: "the broker can't be reached" in service.ready().reasons, what="not being ready")
    own_stack.broker.start()
    assert running.join() == {"done": 1400}
    assert at.committed() == [-1]
