"""``--once`` isn't over while its partitions are lost, or between two generations of its group (P8, classic)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.faults.processor.conftest import CLASSIC
from tests.integration.processor.running import Processors
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

JOIN_GROUP, HEARTBEAT = 11, 12
RECORDS = 100


@pytest.mark.fault("F28")
def test_partitions_that_are_lost_are_waited_for(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    away, handled = threading.Event(), set[int]()

    async def takes_a_while(record: Record) -> None:
        await asyncio.sleep(0.1 if away.is_set() else 0.01)
        handled.add(record.offset)

    settings = processor_settings(
        {
            "processor.handler": processors.handler(takes_a_while),
            "processor.max_in_flight": 1,
            "kafka.librdkafka": CLASSIC,
        },
        1,
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"value"] * RECORDS)

    def decide(api_key: int) -> Fate:
        return Fate.HANG_UP if away.is_set() and api_key in (JOIN_GROUP, HEARTBEAT) else Fate.PASS

    with KafkaProxy(topics.bootstrap, decide) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers), once=True)
        wait_until(lambda: running.done > 5, what="the first records")
        away.set()
        wait_until(lambda: running.stats.rebalances["lost"], what="the end of the session")
        wait_until(lambda: running.ended or "no partitions assigned yet" in running.health.reasons, what="not ready")
        assert len(handled) < RECORDS, "the partition was lost before its end"
        away.clear()
        running.join()
    assert len(handled) == RECORDS
    assert committed(topics.bootstrap, group, topic, 1) == [RECORDS]


@pytest.mark.fault("F29")
def test_a_second_one_waits_for_what_the_first_gives_up(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    shared, handled = threading.Event(), set[tuple[int, int]]()

    def done(record: Record) -> None:
        shared.wait(60)
        handled.add((record.partition, record.offset))

    settings = processor_settings({"processor.handler": processors.handler(done), "processor.max_in_flight": 1}, 2)
    topic = settings.processor.topics[0]
    topics.produce(topic, [Outgoing(b"value", partition=number % 2) for number in range(2 * RECORDS)])
    first = processors.start(settings, once=True)
    wait_until(lambda: first.stats.consumed[topic], what="the first one's records")
    second = processors.start(settings, once=True)
    wait_until(lambda: second.ended or second.stats.consumed[topic], what="the second one's share")
    shared.set()
    for running in (first, second):
        running.join()
    assert second.done, "it got a share and worked it off"
    assert len(handled) == 2 * RECORDS
