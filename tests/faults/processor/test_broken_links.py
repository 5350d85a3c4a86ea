"""Connections of a processor that break at any moment are outages: nothing is lost or committed too early (P1, P8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError

from processor.health import broker_connection
from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import Place
from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.processor.scenario import Counts, ProcessorScenario, ScenarioFactory, accepts, numbers
from tests.refusals.secured_settings import SecuredSettings
from tests.support.settings import with_broker
from tests.support.tcp_proxy import METADATA, Fate, KafkaProxy, without_brokers
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError
from waitreg.local.stack import EmbeddedStack

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


SASL_HANDSHAKE, API_VERSIONS = 17, 18


class Handshakes:
    """Decides about requests: once there is a ``fate``, connections end, and new ones come as far as the handshake."""

    def __init__(self) -> None:
        self.fate: Fate | None = None

    def __call__(self, api: int) -> Fate:
        if self.fate is None or api == API_VERSIONS:
            return Fate.PASS
        return self.fate if api == SASL_HANDSHAKE else Fate.HANG_UP


@pytest.mark.fault("F44")
def test_handshakes_cut_off_or_never_answered_are_waited_out(
    secured_settings: SecuredSettings, processors: Processors, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[KafkaError] = []
    monkeypatch.setattr("processor.health.broker_connection.log_client_error", events.append)
    settings = secured_settings.of(
        "processor",
        "SASL_PLAINTEXT",
        {
            "processor.handler": processors.handler(accepts),
            "processor.commit_interval_s": 0.1,
            "kafka.request_timeout_s": 2,
            # A connection that isn't set up by then is given up.
            "kafka.librdkafka": {"socket.connection.setup.timeout.ms": 1000, "reconnect.backoff.max.ms": 300},
        },
    )
    topics, topic = secured_settings.topics, settings.processor.topics[0]
    handshakes = Handshakes()
    with KafkaProxy(settings.kafka.bootstrap_servers, handshakes) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers)).wait_joined()
        try:
            for done, fate in enumerate((Fate.HANG_UP, Fate.LOSE_REQUEST)):
                events.clear()
                handshakes.fate = fate
                wait_until(lambda: _at_the_handshake(events) and not running.health.ok, 60, f"an outage: {fate.value}")
                topics.produce(topic, [b"value"])
                handshakes.fate = None
                wait_until(lambda: running.done > done and running.health.ok, 60, "its end")  # noqa: B023 - called at once
        finally:  # it leaves the group through the proxy
            handshakes.fate = None
            running.stop()


def _at_the_handshake(events: list[KafkaError]) -> bool:
    return any(
        error.code() == KafkaError._AUTHENTICATION and "mechanism handshake failed: Local:" in error.str()
        for error in list(events)
    )


pytestmark = pytest.mark.timeout(400)

RECORDS = 20


class StartingCluster:
    """Changes answers: while the broker starts, answers about brokers name none."""

    starts = False

    def __call__(self, api_key: int, answer: bytes) -> bytes:
        return without_brokers(answer) if self.starts and api_key == METADATA else answer


@pytest.mark.fault("F45")
def test_no_known_broker_ends_a_processor(processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_connection, "FORGOTTEN_AFTER_S", 3.0)
    monkeypatch.setattr(broker_connection, "STATISTICS_EVERY_MS", 200)
    quick = {"topic.metadata.refresh.interval.ms": 100, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    at = processor_scenario(others={"kafka.librdkafka": quick}, drain_timeout_s=1, flush_timeout_s=1)
    cluster = StartingCluster()
    with KafkaProxy(at.topics.bootstrap, change=cluster) as proxy:
        running = at.start(proxy.bootstrap_servers).wait_joined()

        # Whether a client still finds its bootstrap servers is a matter of which of two things it does first.
        def forgets() -> bool:
            cluster.starts = not cluster.starts
            return running.ended

        wait_until(forgets, 240, "a client that has forgotten all brokers", poll_s=0.2)
        cluster.starts = False
    with pytest.raises(TransientError, match="Kafka client has known no broker for 3 s"):
        running.join()
    at.produce([b"value"] * RECORDS)
    following = at.start().wait_joined()
    wait_until(lambda: following.done == RECORDS, what="the records of the next one")
