"""A processor whose connection to the broker breaks in any way loses nothing and commits nothing too early (P1, P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import ConsumerGroupState

from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import Place
from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import Counts, ProcessorScenario, ScenarioFactory, numbers
from tests.support.tcp_proxy import KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.local.stack import EmbeddedStack

WAVE = 150


@dataclass(frozen=True)
class Working:
    """A processor in the middle of its work, with everything to look at it."""

    at: ProcessorScenario
    running: RunningProcessor
    seen: Observation
    calls: Counter[Place]

    def publish_more(self) -> None:
        """Publish a wave of records, past the link."""
        self.seen.publish(numbers(WAVE))

    def work_off(self) -> None:
        """Publish a last wave, wait until everything is done, stop, and judge."""
        self.publish_more()
        total = len(self.seen.published)
        wait_until(lambda: len(self.calls) == total, what="the calls of all records")
        self.running.stop()
        found = self.seen.judge(self.calls)
        assert all(story.resolved for story in found.values())

    def group_state(self) -> ConsumerGroupState:
        """Return the group's state as the broker sees it."""
        described = self.at.topics.admin.describe_consumer_groups([self.at.group])[self.at.group]
        state: ConsumerGroupState = described.result(15).state
        return state


@pytest.fixture
def link(short_sessions: EmbeddedStack) -> Iterator[KafkaProxy]:
    """What the processor reaches the broker by."""
    with KafkaProxy(short_sessions.bootstrap_servers) as own:
        yield own


@pytest.fixture
def working(link: KafkaProxy, faulty_scenario: ScenarioFactory) -> Iterator[Working]:
    handler = Counts(0.01)
    # A request without an answer is given up after this time, and its connection with it.
    at = faulty_scenario(handler, 3, {"kafka.librdkafka": {"socket.timeout.ms": 2500}}, max_in_flight=4)
    with Observation(at.topics, at.settings) as seen:
        # Joined before there are records, so that the first of them are no warm-up: what waits there for a commit, when
        # the partition is lost, gets no call from this process.
        own = Working(at, at.start(link.address).wait_joined(), seen, handler.calls)
        own.publish_more()
        wait_until(lambda: own.running.done > 20, what="the first records")
        yield own


@pytest.mark.fault("F43")
def test_connections_cut_again_and_again_lose_nothing(working: Working, link: KafkaProxy) -> None:
    before = link.figures.connections_cut
    for _ in range(5):
        done = working.running.done
        working.publish_more()
        assert link.cut() > 0
        wait_until(lambda done=done: working.running.done > done + 20, what="work after a cut")  # type: ignore[misc]
    assert link.figures.connections_cut >= before + 5
    working.work_off()


@pytest.mark.fault("F46")
def test_a_stall_beyond_the_session_costs_the_partitions_and_no_record(working: Working, link: KafkaProxy) -> None:
    held_back = link.figures.bytes_held_back
    link.stall()
    working.publish_more()
    wait_until(lambda: working.group_state() is ConsumerGroupState.EMPTY, what="the end of the session")
    assert link.figures.bytes_held_back > held_back
    link.flow()
    working.work_off()


@pytest.mark.fault("F47")
def test_answers_that_never_come_lose_and_double_nothing(working: Working, link: KafkaProxy) -> None:
    before = link.figures
    link.half_open()
    working.publish_more()
    # It has closed its connections and opened others, in vain.
    wait_until(lambda: link.figures.connections > before.connections + 2, what="new connections")
    link.cut()
    assert link.figures.bytes_dropped > before.bytes_dropped, "answers were lost on their way"
    link.flow()
    working.work_off()


@pytest.mark.fault("F48")
def test_a_slow_link_slows_the_work_and_loses_nothing(working: Working, link: KafkaProxy) -> None:
    before = link.figures.bytes_slowed
    link.slow(bytes_per_s=50_000, delay_s=0.05)
    done = working.running.done
    working.publish_more()
    wait_until(lambda: working.running.done > done + WAVE, what="work over the slow link")
    assert link.figures.bytes_slowed > before
    link.flow()
    working.work_off()
