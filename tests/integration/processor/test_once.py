"""``--once`` under KIP-848 ends when what stood there is worked off, or held by a member that is certainly alive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from processor import once
from tests.integration.processor.running import Processors
from tests.support.committed_offsets import committed
from tests.support.kafka_io import group_member
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.settings import settings_against
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.local.stack import EmbeddedStack
from wait_registry.settings.root import Settings

QUICK_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "12000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
}


@pytest.fixture
def quick_sessions() -> Iterator[EmbeddedStack]:
    """A broker that takes a dead member's partitions back after twelve seconds, when another has long joined."""
    with EmbeddedStack(broker_properties=QUICK_SESSIONS, postgres_settings={"fsync": "off"}) as running:
        yield running


def test_it_waits_for_the_partitions_of_a_member_that_has_died(
    quick_sessions: EmbeddedStack, names: Names, services: Services, processors: Processors
) -> None:
    settings = settings_against(
        quick_sessions.bootstrap_servers,
        quick_sessions.postgres_url,
        names,
        {
            "processor.handler": "tests.integration.processor.deadly_handlers:accepts",
            "processor.group_protocol": "consumer",
            "processor.commit_interval_s": 0.1,
        },
    )
    topics = Topics(quick_sessions.bootstrap_servers)
    topics.create_own(settings, 1)
    [topic], group = settings.processor.topics, settings.processor.group
    dead = services.start("processor", settings).wait_ready()
    topics.produce(topic, [b"first"])
    wait_until(lambda: committed(topics.bootstrap, group, topic, 1) == [1], 60, "the commit of the first record")
    dead.kill()
    topics.produce(topic, [b"value"] * 5)

    assert processors.run_once(settings).settled == {"done": 5}
    assert committed(topics.bootstrap, group, topic, 1) == [6], "all that stood there, although a dead one had it"


def test_it_says_what_it_leaves_to_a_member_that_is_alive(
    processor_settings: Callable[..., Settings],
    topics: Topics,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def done(record: Record) -> None:
        pass

    settings = processor_settings(
        {"processor.handler": processors.handler(done), "processor.group_protocol": "consumer"}, 1
    )
    topic = settings.processor.topics[0]
    topics.produce(topic, [b"value"] * 3)
    monkeypatch.setattr(once, "ALIVE_AFTER_S", 2.0)
    alive = group_member(topics.bootstrap, settings.processor.group, [topic])
    with closing(alive):
        wait_until(lambda: alive.poll(0.1) is None and alive.assignment(), 60, "the other one's partition")
        running = processors.run_once(settings)
    assert running.settled == {}
    assert f"not processed here, but by live members of the group: {topic}[0] by " in caplog.text
