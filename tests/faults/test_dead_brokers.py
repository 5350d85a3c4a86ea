"""One broker of three may die at any time, and nothing is lost or doubled; without two all waits (P1-P4, P6, P8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from sweeper.export_transaction import transactional_id
from tests.faults.cluster import EmbeddedCluster
from tests.faults.processor.conftest import IMPATIENT, QUICK
from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import Place
from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.sink.conftest import StartSink
from tests.integration.sweeper.scenario import Scenario, Sweeping
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.processes import gone
from tests.support.settings import settings_against
from tests.support.stack import Stack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError
from wait_registry.handler import Record
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import TopicIdentity, describe_topic
from wait_registry.kafka.errors import is_transient
from wait_registry.kafka.topics import create_topics
from wait_registry.settings.tree import Settings

pytestmark = pytest.mark.timeout(400)

WAVE = 120
# Each in a transaction of its own.
EXPORTS = 40
# Kafka names any living broker as the controller, so these clients may know different ones.
CLIENTS = 8
REPLICATED: dict[str, Any] = {"wait.replication_factor": 3, "wait.min_insync_replicas": 2}
TRANSACTIONS = "__transaction_state"
NOBODY = "postgresql://postgres@127.0.0.1:1/postgres"


@pytest.fixture
def calls() -> Counter[Place]:
    return Counter()


@pytest.fixture
def settings(cluster: EmbeddedCluster, names: Names, processors: Processors, calls: Counter[Place]) -> Settings:
    async def takes_a_while(record: Record) -> None:
        calls[record.partition, record.offset] += 1
        await asyncio.sleep(0.01)

    made = settings_against(
        cluster.bootstrap_servers,
        NOBODY,
        names,
        {**QUICK, **REPLICATED, "processor.handler": processors.handler(takes_a_while), "processor.max_in_flight": 4},
    )
    topic = made.processor.topics[0]
    cluster.admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    Topics(cluster.bootstrap_servers).create_own(made)
    for each in (topic, made.wait.topic, made.dead_letter.topic):
        cluster.wait_known(each)
    return made


@pytest.fixture
def seen(cluster: EmbeddedCluster, settings: Settings) -> Iterator[Observation]:
    with Observation(Topics(cluster.bootstrap_servers), settings) as observation:
        yield observation


def publish(seen: Observation) -> None:
    seen.publish(b"%d" % number for number in range(WAVE))


def work_off(running: RunningProcessor, seen: Observation, calls: Counter[Place], *, each_once: bool = True) -> None:
    """Wait until everything is done, stop, and judge."""
    wait_until(lambda: len(calls) == len(seen.published), 120, "the calls of all records")
    running.stop()
    found = seen.judge(calls, each_once=each_once)
    assert all(story.resolved for story in found.values())


@pytest.mark.fault("F52")
def test_moved_leaders_and_a_dead_broker_lose_nothing_and_stop_no_service(
    cluster: EmbeddedCluster, settings: Settings, processors: Processors, seen: Observation, calls: Counter[Place]
) -> None:
    wait_topic = settings.wait.topic
    running = processors.start(settings).wait_joined()
    publish(seen)
    wait_until(lambda: running.done > 20, what="the first records")
    before = cluster.leaders(wait_topic)
    moved = before[0]
    assert moved is not None
    cluster.brokers[moved].stop()
    publish(seen)
    wait_until(lambda: running.done > WAVE, what="work with two brokers")
    assert moved not in cluster.leaders(wait_topic).values()
    cluster.start([moved])
    cluster.wait_in_sync(wait_topic, seen.topic)
    publish(seen)
    cluster.elect_preferred(wait_topic, seen.topic)
    wait_until(lambda: cluster.leaders(wait_topic) == before, what="the leaders of the beginning")
    # The group's coordinator, which leads something of every topic too; and for some clients it is the controller.
    clients = [admin(settings.kafka) for _ in range(CLIENTS)]
    known = [describe_topic(client, wait_topic) for client in clients]
    group = settings.processor.group
    coordinator = cluster.admin.describe_consumer_groups([group])[group].result(30).coordinator.id
    publish(seen)
    died = cluster.brokers[coordinator].pid
    cluster.brokers[coordinator].kill()
    assert gone(died)
    publish(seen)
    work_off(running, seen, calls)
    assert coordinator not in cluster.leaders(wait_topic).values()
    for client, identity in zip(clients, known, strict=True):
        wait_until(lambda: still_answers(client, identity), 30, "an answer")  # noqa: B023 - called at once


@pytest.mark.fault("F53")
def test_a_processor_waits_while_two_brokers_of_three_are_dead(
    cluster: EmbeddedCluster,
    settings: Settings,
    processors: Processors,
    seen: Observation,
    calls: Counter[Place],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processor.health.readiness.UNACKNOWLEDGED_S", 3.0)
    running = processors.start(settings).wait_joined()
    publish(seen)
    wait_until(lambda: running.done > 20, what="the first records")
    dead = [2, 3]
    pids = [cluster.brokers[node].pid for node in dead]
    for node in dead:
        cluster.brokers[node].kill()
    assert all(map(gone, pids))
    wait_until(lambda: not running.health.ok, what="not being ready")
    assert len(calls) < WAVE, "there was work left"
    done = running.done
    wait_until(lambda: any("unacknowledged for" in reason for reason in running.health.reasons), what="the reason")
    assert running.done == done, "nothing is done that isn't replicated"
    cluster.start(dead)
    publish(seen)
    work_off(running, seen, calls, each_once=False)


@pytest.mark.fault("F54")
def test_each_row_is_exported_once_whichever_broker_dies(
    cluster: EmbeddedCluster, stack: Stack, names: Names, database: Database, start_sink: StartSink
) -> None:
    small = {"wait.partitions": 1, "wait.skew_allowance_s": 0, "sweeper.chunk_rows": 1, "sink.poll_interval_s": 0.1}
    quick = {
        "sink.restart_backoff_max_s": 0.5,
        "sweeper.transaction_timeout_ms": 3000,
        "kafka.request_timeout_s": 5,
        "kafka.librdkafka": IMPATIENT,
    }
    overrides = {**REPLICATED, **small, **quick}
    settings = settings_against(cluster.bootstrap_servers, stack.postgres_url, names, overrides)
    topics = Topics(cluster.bootstrap_servers)
    create_topics(settings)
    for each in (settings.wait.topic, settings.dead_letter.topic):
        cluster.wait_known(each)
    database.install(settings)
    at = Scenario(settings, topics, database)

    def register_wave() -> set[str]:
        return {item.wait_id for item in at.register(at.wait_record(number) for number in range(EXPORTS))}

    sink = start_sink(settings).wait_ready()
    with Sweeping(settings) as sweeping:
        due: set[str] = set()
        for victim in (transaction_coordinator, leader_of_the_wait_topic):
            exported = len(due)
            due |= register_wave()
            wait_until(lambda: len(at.dead_lettered_ids()) > exported, what="the first exports of a wave")  # noqa: B023
            node = victim(cluster, settings)
            died = cluster.brokers[node].pid
            cluster.brokers[node].kill()
            assert gone(died)
            # Whatever of the first wave is exported by now: these are not.
            due |= register_wave()
            wait_until(lambda: exported_ids(at) == due, 120, "all exports with two brokers")  # noqa: B023
            cluster.start([node])
            cluster.wait_in_sync(settings.wait.topic, settings.dead_letter.topic, TRANSACTIONS)
        assert sweeping.error is None
    assert at.dead_lettered_ids() == sorted(due), "each once"
    shown = "select wait_expiration_uuid from dead_letter order by 1"
    wait_until(lambda: [row for (row,) in database.rows(settings, shown)] == sorted(due), what="the dead letters' view")
    wait_until(lambda: database.rows(settings, "select count(*) from wait") == [(0,)], what="the empty view")
    assert not sink.ended


def exported_ids(at: Scenario) -> set[str]:
    """Return the wait ids of all dead letters; none while a new leader doesn't answer yet."""
    try:
        return set(at.dead_lettered_ids())
    except KafkaException as error:
        assert is_transient(error.args[0])
        return set()


def transaction_coordinator(cluster: EmbeddedCluster, settings: Settings) -> int:
    """Return who leads the partition of the transaction log that Kafka gives the sweeper's transactional id."""
    leaders = cluster.leaders(TRANSACTIONS)
    return leaders[java_hash(transactional_id(settings.wait.topic, 0)) % len(leaders)]


def leader_of_the_wait_topic(cluster: EmbeddedCluster, settings: Settings) -> int:
    return cluster.leaders(settings.wait.topic)[0]


def java_hash(text: str) -> int:
    """Return `String.hashCode` of an ASCII text without its sign bit, as `Utils.abs` of Kafka takes it."""
    hashed = 0
    for byte in text.encode():
        hashed = (31 * hashed + byte) & 0xFFFF_FFFF
    if hashed >= 1 << 31:
        hashed = (1 << 32) - hashed
    return hashed & 0x7FFF_FFFF


def still_answers(client: Admin, known: TopicIdentity) -> bool:
    try:
        return describe_topic(client, known.topic) == known
    except TransientError:
        return False
