"""After an assignment no handler starts before a commit that covers its record is confirmed (P1).

Otherwise a record that kills its process would be polled again indefinitely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

FETCH, OFFSET_COMMIT = 1, 8


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F42")
def test_no_handler_starts_while_the_first_commit_is_unanswered(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    started: list[int] = []

    async def notes(record: Record) -> None:
        started.append(record.offset)

    requests: Counter[int] = Counter()
    losing = True

    def decide(api: int) -> Fate:
        requests[api] += 1
        return Fate.LOSE_REQUEST if losing and api == OFFSET_COMMIT else Fate.PASS

    settings = processor_settings(
        {
            "processor.handler": processors.handler(notes),
            # A request without an answer fails after this time, and is made again.
            "kafka.librdkafka": {"socket.timeout.ms": 4_000},
        },
        1,
    )
    topic = settings.processor.topics[0]
    topics.produce(topic, [b"%d" % number for number in range(20)])
    with KafkaProxy(topics.bootstrap, decide) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers))
        try:
            wait_until(lambda: proxy.lost.is_set() and running.stats.registered == 20, 60, "the lost commit")
            begun = requests[FETCH]
            wait_until(lambda: requests[FETCH] >= begun + 5, 60, "five more fetches")
            assert started == []

            losing = False
            wait_until(lambda: running.done == 20, 60, "all records")
            assert started == list(range(20))
        finally:  # it leaves the group through the proxy
            losing = False
            running.stop()
