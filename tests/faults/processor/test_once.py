"""``--once`` isn't over while its partitions are lost, or between two generations of its group (P8, classic)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.faults.processor.conftest import CLASSIC
from tests.integration.processor.scenario import Gate, ScenarioFactory
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.handler import Record

JOIN_GROUP, HEARTBEAT = 11, 12
RECORDS = 100


@pytest.mark.fault("F28")
def test_partitions_that_are_lost_are_waited_for(processor_scenario: ScenarioFactory) -> None:
    away, handled = threading.Event(), set[int]()

    async def takes_a_while(record: Record) -> None:
        await asyncio.sleep(0.1 if away.is_set() else 0.01)
        handled.add(record.offset)

    at = processor_scenario(takes_a_while, 1, {"kafka.librdkafka": CLASSIC}, max_in_flight=1)
    at.produce([b"value"] * RECORDS)

    def decide(api_key: int) -> Fate:
        return Fate.HANG_UP if away.is_set() and api_key in (JOIN_GROUP, HEARTBEAT) else Fate.PASS

    with KafkaProxy(at.topics.bootstrap, decide) as proxy:
        running = at.start(proxy.bootstrap_servers, once=True)
        wait_until(lambda: running.done > 5, what="the first records")
        away.set()
        wait_until(lambda: running.stats.rebalances["lost"], what="the end of the session")
        wait_until(lambda: running.ended or "no partitions assigned yet" in running.health.reasons, what="not ready")
        assert len(handled) < RECORDS, "the partition was lost before its end"
        away.clear()
        running.join()
    assert len(handled) == RECORDS
    assert at.committed() == [RECORDS]


@pytest.mark.fault("F29")
def test_a_second_one_waits_for_what_the_first_gives_up(processor_scenario: ScenarioFactory) -> None:
    gate = Gate()
    at = processor_scenario(gate, 2, max_in_flight=1)
    written = at.produce_to_each(RECORDS)
    first = at.start(once=True)
    wait_until(lambda: first.stats.consumed[at.topic], what="the first one's records")
    second = at.start(once=True)
    wait_until(lambda: second.ended or second.stats.consumed[at.topic], what="the second one's share")
    gate.opened.set()
    for running in (first, second):
        running.join()
    assert second.done, "it got a share and worked it off"
    assert len(gate.calls) == written
