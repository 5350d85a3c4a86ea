"""Rebalances with registered records that haven't started: nothing lost, nothing done twice, no false tombstone."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

# A member learns of a rebalance by its next heartbeat: 3 s later by default.
SOON = {"kafka.librdkafka": {"heartbeat.interval.ms": 300}}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cooperative": {"processor.assignment_strategy": "cooperative-sticky", **SOON},
    "eager": {"processor.assignment_strategy": "range", **SOON},
    "KIP-848": {"processor.group_protocol": "consumer"},
}


class Gate:
    """A handler that lets ``free`` records pass and holds the others until it is opened."""

    def __init__(self, free: int) -> None:
        self.calls: Counter[tuple[int, int]] = Counter()
        self.opened = threading.Event()
        self._free = free

    async def __call__(self, record: Record) -> None:
        self.calls[record.partition, record.offset] += 1
        if sum(self.calls.values()) > self._free:
            while not self.opened.is_set():  # noqa: ASYNC110 - opened by another thread
                await asyncio.sleep(0.01)


@pytest.mark.guarantee("P1.4")
@pytest.mark.fault("F6")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unstarted_records_are_handled_by_one_of_two_owners(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    gate = Gate(free=16)
    settings = processor_settings(
        {
            "processor.handler": processors.handler(gate),
            "processor.max_in_flight": 4,
            # What is registered after the warm-up stays uncommitted.
            "processor.commit_interval_s": 60,
            **PROTOCOLS[protocol],
        },
        4,
    )
    topic = settings.processor.topics[0]

    def produce(each: int) -> None:
        topics.produce(topic, [Outgoing(b"value", partition=number % 4) for number in range(4 * each)])

    produce(4)
    first = processors.start(settings)
    wait_until(lambda: first.done == 16, 60, "the free records: the first windows of all partitions")
    produce(6)
    wait_until(lambda: first.stats.registered == 40 and len(gate.calls) == 20, 60, "20 records that haven't started")

    second = processors.start(settings)
    wait_until(lambda: second.stats.registered >= 8, 60, "registrations by the second")
    gate.opened.set()
    produce(5)
    wait_until(lambda: first.done + second.done == 60, 60, "all records")
    for running in (first, second):
        running.stop()

    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 60
    assert all(story.resolved and story.outcomes == ["done"] for story in told.values())
    assert set(gate.calls.values()) == {1}, "each exactly once"
    taken_over = [story for story in told.values() if len({wait.text("WAIT_INSTANCE") for wait in story.waits}) == 2]
    assert taken_over, "some were registered by the first and handled by the second"
    assert committed(topics.bootstrap, settings.processor.group, topic, 4) == [15, 15, 15, 15]


@pytest.mark.guarantee("P1.4")
@pytest.mark.fault("F3")
def test_a_stop_releases_unstarted_records_and_finishes_others(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    gate = Gate(free=10)
    settings = processor_settings(
        {
            "processor.handler": processors.handler(gate),
            "processor.max_in_flight": 2,
            "processor.commit_interval_s": 60,
        },
        1,
    )
    topic = settings.processor.topics[0]
    topics.produce(topic, [b"%d" % number for number in range(60)])
    first = processors.start(settings)
    wait_until(lambda: len(gate.calls) == 12 and first.stats.registered >= 20, 60, "two held handlers")
    first.service.request_stop()
    wait_until(lambda: "draining" in first.health.reasons, 60, "the drain")
    [position] = wait_until(
        lambda: [p for p in committed(topics.bootstrap, settings.processor.group, topic, 1) if p >= 12],
        60,
        "the commit before the handlers have ended",
    )
    gate.opened.set()
    first.join()
    told = stories(topics.read(settings.wait.topic))
    finished = {origin[2] for origin, story in told.items() if story.resolved}
    assert finished == set(range(position)), "all that the commit has passed, and nothing else, has its outcome"

    processors.run_once(settings)
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 60
    assert all(story.resolved for story in told.values())
    assert set(gate.calls.values()) == {1}


@pytest.mark.parametrize("protocol", ["cooperative", "KIP-848"])
def test_a_process_without_partitions_is_ready_too(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(Gate(free=9)), **PROTOCOLS[protocol]}, 1)
    both = [processors.start(settings).wait_joined() for _ in range(2)]
    topics.produce(settings.processor.topics[0], [b"value"] * 3)
    wait_until(lambda: sum(running.done for running in both) == 3, 60, "the records")
    for running in both:
        running.stop()


@pytest.mark.fault("F4")
def test_a_drain_over_its_limit_leaves_the_rest_to_the_registry(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    gate = Gate(free=0)
    settings = processor_settings(
        {
            "processor.handler": processors.handler(gate),
            "processor.max_in_flight": 2,
            "processor.drain_timeout_s": 0.2,
        },
        1,
    )
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(5)])
    running = processors.start(settings)
    wait_until(lambda: len(gate.calls) == 2, 60, "two held handlers")
    running.stop()
    told = stories(topics.read(settings.wait.topic))
    assert [story.outcomes for story in told.values()] == [[]] * len(told)
    [position] = committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1)
    assert set(range(position)) <= {origin[2] for origin in told}, "every committed record is registered"
