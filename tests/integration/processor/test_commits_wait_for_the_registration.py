"""No offset is committed while a wait record below it is on its way, however long that takes (P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.support.committed_offsets import committed
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

PRODUCE, FETCH, OFFSET_COMMIT = 0, 1, 8


@pytest.mark.guarantee("P2.2", "C.2")
@pytest.mark.fault("F41")
def test_nothing_is_committed_while_wait_records_do_not_arrive(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    requests: Counter[int] = Counter()
    losing = True

    def decide(api: int) -> Fate:
        requests[api] += 1
        return Fate.LOSE_REQUEST if losing and api == PRODUCE else Fate.PASS

    settings = processor_settings(
        {
            "processor.handler": processors.handler(done),
            # A request without an answer is sent again after this time.
            "kafka.librdkafka": {"socket.timeout.ms": 4_000},
        },
        1,
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(20)])
    with KafkaProxy(topics.bootstrap, decide) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers))
        try:
            wait_until(lambda: proxy.lost.is_set() and running.stats.consumed[topic] == 20, 60, "the lost request")
            # A fetch takes a tenth of a second, and so long is the pause between commits.
            begun = requests[FETCH]
            wait_until(lambda: requests[FETCH] >= begun + 10, 60, "ten more fetches")
            assert requests[OFFSET_COMMIT] == 0
            assert committed(topics.bootstrap, group, topic, 1) == [-1]

            losing = False
            wait_until(lambda: running.done == 20, 60, "all records")
            wait_until(lambda: committed(topics.bootstrap, group, topic, 1) == [20], 60, "the commit")
        finally:  # it leaves the group through the proxy
            losing = False
            running.stop()
