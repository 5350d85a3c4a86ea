"""Every registration has its own expiry, so processors of one group may have different `processor.ttl_s`."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.integration.sweeper.scenario import Scenario
from tests.support.committed_offsets import committed
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.processes import Services
from tests.support.settings import changed
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.records.times import parse_utc_ms
from wait_registry.records.topics import redelivery_topic

SOON_S, LATER_S, ALLOWANCE_S = 8.0, 3600.0, 1.0
A_PARTITION = 5


def rules(ttl_s: float) -> dict[str, object]:
    return {
        "processor.handler": f"{HANDLERS}:dies_of_poison",
        "processor.ttl_s": ttl_s,
        "processor.max_in_flight": 4,
        "processor.prefetch_max": 8,
        "processor.max_attempts": 1,
        "processor.handler_timeout_s": 1,
        "processor.margin_s": 0.5,
        "processor.commit_interval_s": 0.1,
        "wait.skew_allowance_s": ALLOWANCE_S,
        "wait.partitions": 1,
        # A killed member releases its partitions at the end of its session.
        "kafka.librdkafka": {"session.timeout.ms": 6000},
    }


@pytest.mark.timeout(240)
def test_each_record_expires_by_the_ttl_of_its_own_processor(
    prepared: SettingsFactory, topics: Topics, database: Database, services: Services, processors: Processors,
    calls: Calls,
) -> None:  # fmt: skip
    soon, later = prepared(rules(SOON_S), 2), prepared(rules(LATER_S), 2)
    topic, group = soon.processor.topics[0], soon.processor.group
    topics.delete(redelivery_topic(topic, group))
    both = [services.start("processor", each, environment=calls.environment) for each in (soon, later)]
    for one in both:
        one.wait_ready()
    owned = "waitreg_processor_assigned_partitions"
    wait_until(lambda: all(one.metrics()[owned] == 1 for one in both), 60, "a partition for each")
    for partition in (0, 1):
        values = [b"poison", *[b"%d" % number for number in range(1, A_PARTITION)]]
        topics.produce(topic, [Outgoing(value, partition=partition) for value in values])
    assert [one.wait() for one in both] == [9, 9]

    found = stories(topics.read(soon.wait.topic))
    positions = committed(topics.bootstrap, group, topic, 2)
    assert all((topic, part, offset) in found for part in (0, 1) for offset in range(max(positions[part], 0)))
    by_ttl = {SOON_S: set[bytes | None](), LATER_S: set[bytes | None]()}
    for story in found.values():
        by_ttl[SOON_S if lifetime_s(story.waits[0]) < 2 * SOON_S else LATER_S].add(story.waits[0].key)
    assert all(by_ttl.values()), "each of them has registered records"

    at = Scenario(soon, topics, database)
    at.show()
    wait_until(lambda: at.sweep().counts.total() + len(at.dead_letters()) >= len(by_ttl[SOON_S]), 60, "the export")
    letters = at.dead_letters()
    assert {letter.header("WAIT_EXPIRATION_UUID") for letter in letters} == by_ttl[SOON_S], "the others have time left"
    expiry = {story.waits[0].key: parse_utc_ms(story.waits[0].text("WAIT_EXPIRATION_TIME")) for story in found.values()}
    for letter in letters:
        due_ms = expiry[letter.header("WAIT_EXPIRATION_UUID")] + ALLOWANCE_S * 1000
        assert parse_utc_ms(letter.text("DLQ_TIME")) >= due_ms

    handled: list[tuple[int, int]] = []

    async def take(record: Record) -> None:
        handled.append((record.partition, record.offset))

    processors.run_once(changed(soon, "processor", handler=processors.handler(take), ttl_s=SOON_S + 1))
    everything = {(partition, offset) for partition in (0, 1) for offset in range(A_PARTITION)}
    assert {(origin[1], origin[2]) for origin in found} | set(handled) == everything


def lifetime_s(wait: ReadRecord) -> float:
    """Return how long a registration had from when the broker took it, s."""
    return (parse_utc_ms(wait.text("WAIT_EXPIRATION_TIME")) - wait.timestamp_ms) / 1000
