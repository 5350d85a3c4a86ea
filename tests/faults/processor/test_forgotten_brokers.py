"""Brokers that know of none, not even of themselves, for a moment: no client stays alone with that (P8)."""

from __future__ import annotations

import pytest

from processor.intake import broker_connection
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.tcp_proxy import METADATA, KafkaProxy, without_brokers
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError

pytestmark = pytest.mark.timeout(400)

RECORDS = 20


class StartingCluster:
    """Changes answers: while the broker starts, answers about brokers name none."""

    starts = False

    def __call__(self, api_key: int, answer: bytes) -> bytes:
        return without_brokers(answer) if self.starts and api_key == METADATA else answer


@pytest.mark.fault("F45")
def test_a_client_that_forgot_all_brokers_ends_its_processor(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_connection, "FORGOTTEN_AFTER_S", 3.0)
    monkeypatch.setattr(broker_connection, "STATISTICS_EVERY_MS", 200)
    quick = {
        "topic.metadata.refresh.interval.ms": 100,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
    }
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
