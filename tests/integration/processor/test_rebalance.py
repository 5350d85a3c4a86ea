"""Rebalances and stops with records that haven't started: nothing lost, nothing done twice, no false tombstone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from processor.intake.group_consumer import GroupConsumer
from tests.integration.processor.scenario import PROTOCOLS, Gate, ScenarioFactory, accepts, numbers
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.telemetry.metrics import PROCESSOR_ASSIGNED

OFFSET_COMMIT = 8
PATIENCE_S = 60.0
LOOP_ANSWERS_WITHIN_S = 10.0
# A member learns of a rebalance by its next heartbeat: 3 s later by default; under KIP-848 the broker says how often.
SOON = {"kafka.librdkafka": {"heartbeat.interval.ms": 300}}
HEARTBEATS: dict[str, dict[str, Any]] = {"cooperative": SOON, "eager": SOON, "KIP-848": {}}


@pytest.mark.guarantee("P1.4")
@pytest.mark.fault("F6")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unstarted_records_are_handled_by_one_of_two_owners(protocol: str, processor_scenario: ScenarioFactory) -> None:
    gate = Gate(free=16)
    # What is registered after the warm-up stays uncommitted.
    own = {"max_in_flight": 4, "commit_interval_s": 60, **PROTOCOLS[protocol]}
    at = processor_scenario(gate, 4, HEARTBEATS[protocol], **own).of_the_input_alone()
    at.produce_to_each(4)
    first = at.start()
    wait_until(lambda: first.done == 16, what="the free records: the warm-up of all partitions")
    at.produce_to_each(6)
    wait_until(lambda: first.stats.registered == 40 and len(gate.calls) == 20, what="20 records that haven't started")
    second = at.start()
    wait_until(lambda: second.stats.registered >= 8, what="registrations by the second")
    gate.opened.set()
    at.produce_to_each(5)
    wait_until(lambda: first.done + second.done == 60, what="all records")
    for running in (first, second):
        running.stop()
    found = at.resolved_stories(60)
    assert all(story.outcomes == ["done"] for story in found)
    assert set(gate.calls.values()) == {1}, "each exactly once"
    taken_over = [story for story in found if len({wait.text("WAIT_INSTANCE") for wait in story.waits}) == 2]
    assert taken_over, "some were registered by the first and handled by the second"
    assert at.committed() == [15, 15, 15, 15]


@pytest.mark.guarantee("P1.4")
@pytest.mark.fault("F3")
def test_a_stop_finishes_what_is_registered_and_releases_the_rest(processor_scenario: ScenarioFactory) -> None:
    gate = Gate(free=10)
    at = processor_scenario(gate, 1, max_in_flight=2, commit_interval_s=60)
    at.produce(numbers(60))
    first = at.start()
    wait_until(lambda: len(gate.calls) == 12 and first.stats.registered >= 20, what="two held handlers")
    first.service.request_stop()
    wait_until(lambda: "draining" in first.health.reasons, what="the drain")
    gate.opened.set()
    first.join()
    [position] = at.committed()
    assert 20 <= position < 60, "the processor polled nothing more"
    finished = {offset for offset, story in at.by_offset().items() if story.resolved}
    assert finished == set(range(position)), "all that the commit has passed, and nothing else, has its outcome"
    at.run_once()
    at.resolved_stories(60)
    assert set(gate.calls.values()) == {1}


@pytest.mark.parametrize("protocol", ["cooperative", "KIP-848"])
def test_a_process_without_partitions_is_ready_too(protocol: str, processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, HEARTBEATS[protocol], **PROTOCOLS[protocol])
    both = [at.start().wait_joined() for _ in range(2)]
    at.produce([b"value"] * 3)
    wait_until(lambda: sum(running.done for running in both) == 3, what="the records")
    for running in both:
        running.stop()


@pytest.mark.fault("F4")
def test_a_drain_over_its_limit_leaves_the_rest_to_the_registry(processor_scenario: ScenarioFactory) -> None:
    gate = Gate()
    at = processor_scenario(gate, 1, max_in_flight=2, drain_timeout_s=0.2)
    at.produce(numbers(5))
    running = at.start()
    wait_until(lambda: len(gate.calls) == 2, what="two held handlers")
    running.stop()
    found = at.by_offset()
    assert [story.outcomes for story in found.values()] == [[]] * len(found)
    [position] = at.committed()
    assert set(range(position)) <= set(found), "every committed record is registered"


def test_a_stopped_processor_finishes_in_the_old_wait_topic(processor_scenario: ScenarioFactory) -> None:
    """P1, P4: a group ended by `--once` leaves nothing in its wait topic that it is about to register in the next."""
    gate = Gate(free=8)
    old = processor_scenario(gate, 2, max_in_flight=2, commit_interval_s=60, drain_timeout_s=4)
    new = old.changed("wait", topic=f"{old.settings.wait.topic}.next")
    old.topics.create_own(new.settings)
    written = old.produce_to_each(4)
    first = old.start()
    wait_until(lambda: first.done == written, what="the free records: the warm-up of all partitions")
    written += old.produce_to_each(5)
    wait_until(lambda: first.stats.registered == written and len(gate.calls) == 10, what="records that wait for a slot")
    first.service.request_stop()
    wait_until(lambda: first.values(PROCESSOR_ASSIGNED) == [0], what="the end of the time for registered records")
    gate.opened.set()
    first.join()
    position = old.committed()
    given_back = [place for place, story in old.stories().items() if not story.resolved]
    assert given_back, "registered, and neither started nor committed"
    assert all(offset >= position[partition] for _, partition, offset in given_back), "all of it is consumed again"
    last = old.start(once=True)
    while not last.ended:
        written += old.produce_to_each(2)
    last.join()
    # Nothing is left for a sweeper of the old topic.
    found = old.resolved_stories(sum(old.committed()))
    written += old.produce_to_each(2)
    new.run_once()
    newer = new.stories()
    assert all(story.resolved for story in newer.values())
    assert not {story.origin for story in found} & newer.keys(), "no record is registered in both"
    assert len(gate.calls) == len(found) + len(newer) == written
    assert set(gate.calls.values()) == {1}


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Have the answer of a commit wait for the loop in the consumer's thread, as a rebalance would there.

    Yields whether the loop answered, for each.
    """
    answered: list[bool] = []
    original = GroupConsumer.on_commit

    def on_commit(self: GroupConsumer, *answer: Any) -> None:
        original(self, *answer)
        reached = threading.Event()
        self._loop.call_soon_threadsafe(reached.set)
        answered.append(reached.wait(LOOP_ANSWERS_WITHIN_S))

    monkeypatch.setattr(GroupConsumer, "on_commit", on_commit)
    yield answered


@pytest.mark.guarantee("P8.20")
def test_a_rebalance_during_the_warm_up_is_answered(processor_scenario: ScenarioFactory, callbacks: list[bool]) -> None:
    """The consumer's own thread may wait for the event loop, so the loop must never wait for the consumer meanwhile.

    While one thread is within a call of the client, every other thread's call waits until it returns. A rebalance
    callback within that call waits for the event loop: had the loop made a call by then, both would wait indefinitely.
    """
    commits = itertools.count()

    def decide(api: int) -> Fate:
        # The first commits the beginning, before any record.
        return Fate.HOLD if api == OFFSET_COMMIT and next(commits) else Fate.PASS

    at = processor_scenario(partitions=1, max_in_flight=50)
    at.produce([b"first"])
    with KafkaProxy(at.topics.bootstrap, decide) as proxy:
        running = at.start(proxy.bootstrap_servers)
        try:
            wait_until(lambda: running.stats.registered == 1, what="the first registration")
            at.produce(numbers(5))
            wait_until(lambda: running.stats.registered == 6, what="registrations that wait for a commit of their own")
            proxy.let_go()
            wait_until(lambda: running.done == 6, what="all records")
        finally:
            proxy.let_go()
            running.stop()
    assert callbacks, "the answer came while the consumer's thread polled"
    assert all(callbacks)
