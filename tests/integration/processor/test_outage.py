"""A broker outage is no failure: the processor waits, reports it, and continues; nothing is lost (P1, P8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.settings import settings_against
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record


@pytest.fixture
def own_topics(own_stack: OwnStack) -> Iterator[Topics]:
    """Topics on a broker that this test may stop."""
    yield Topics(own_stack.bootstrap_servers)


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F49")
def test_a_broker_that_stops_and_comes_back_loses_nothing(
    own_stack: OwnStack, own_topics: Topics, names: Names, processors: Processors
) -> None:
    calls: list[int] = []
    stopped = threading.Event()

    async def waits_for_the_outage(record: Record) -> None:
        calls.append(record.offset)
        while len(calls) > 100 and not stopped.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)

    settings = settings_against(
        own_stack.bootstrap_servers,
        own_stack.postgres_url,
        names,
        {
            "processor.handler": processors.handler(waits_for_the_outage),
            "processor.max_in_flight": 5,
            "processor.ttl_s": 3600,
            "processor.commit_interval_s": 0.1,
        },
    )
    own_topics.create_own(settings)
    topic = settings.processor.topics[0]
    own_topics.produce(topic, [Outgoing(b"%d" % number, b"%d" % number) for number in range(1500)])
    running = processors.start(settings)
    wait_until(lambda: running.done > 50, 60, "the first records")
    own_stack.broker.stop()
    assert running.stats.settled["done"] < 1500, "it was stopped in mid-work"
    stopped.set()
    wait_until(lambda: "the broker can't be reached" in running.health.reasons, 60, "not being ready")
    own_stack.broker.start()
    wait_until(lambda: running.done >= 1500, 120, "all records")
    wait_until(lambda: running.health.ok, 60, "being ready again")
    running.stop()
    told = stories(own_topics.read(settings.wait.topic))
    assert len(told) == 1500
    assert all(story.resolved for story in told.values())


@pytest.mark.fault("F50")
def test_a_frozen_broker_means_not_ready_until_it_continues(
    own_stack: OwnStack, own_topics: Topics, names: Names, processors: Processors
) -> None:
    calls: list[int] = []
    frozen = threading.Event()

    async def waits_for_the_frost(record: Record) -> None:
        calls.append(record.offset)
        while len(calls) > 100 and not frozen.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)

    settings = settings_against(
        own_stack.bootstrap_servers,
        own_stack.postgres_url,
        names,
        {"processor.handler": processors.handler(waits_for_the_frost), "processor.max_in_flight": 5},
    )
    own_topics.create_own(settings)
    running = processors.start(settings)
    own_topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(1500)])
    wait_until(lambda: running.done > 50, 60, "the first records")
    own_stack.broker.pause()
    try:
        frozen.set()
        # Its connections stay open: nothing but the missing acknowledgments shows it.
        wait_until(lambda: any("unacknowledged for" in reason for reason in running.health.reasons), 60, "not ready")
    finally:
        own_stack.broker.resume()
    wait_until(lambda: running.done == 1500 and running.health.ok, 90, "all records, and being ready again")
    running.stop()


@pytest.mark.fault("F51")
def test_a_processor_that_starts_during_an_outage_waits_for_the_broker(
    own_stack: OwnStack, own_topics: Topics, names: Names, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    settings = settings_against(
        own_stack.bootstrap_servers,
        own_stack.postgres_url,
        names,
        {"processor.handler": processors.handler(done), "kafka.request_timeout_s": 2},
    )
    own_topics.create_own(settings)
    own_topics.produce(settings.processor.topics[0], [b"value"] * 10)
    own_stack.broker.stop()
    running = processors.start(settings)
    wait_until(lambda: "the broker can't be reached" in running.health.reasons, 60, "not being ready")
    own_stack.broker.start()
    wait_until(lambda: running.done == 10, 60, "all records")
    running.stop()


@pytest.mark.fault("F5")
def test_a_processor_told_to_stop_during_an_outage_ends(
    own_stack: OwnStack, own_topics: Topics, names: Names, services: Services, tmp_path: Path
) -> None:
    settings = settings_against(
        own_stack.bootstrap_servers,
        own_stack.postgres_url,
        names,
        {
            "processor.handler": "tests.integration.processor.deadly_handlers:slow",
            "kafka.request_timeout_s": 2,
            "processor.commit_interval_s": 0.1,
            "processor.drain_timeout_s": 3,
            "processor.flush_timeout_s": 2,
        },
    )
    own_topics.create_own(settings)
    own_topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(3000)])
    calls = tmp_path / "calls"
    service = services.start("processor", settings, environment={"CALLS": str(calls)}).wait_ready()
    wait_until(lambda: calls.exists() and calls.read_bytes().count(b"\n") > 50, 60, "calls")
    own_stack.broker.stop()
    # Neither the last commit nor the leaving of the group is answered.
    assert service.terminate() == 0
