"""A broker that doesn't tell where new partitions begin is asked again, and the processor then goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

OFFSET_FETCH, CONSUMER_GROUP_DESCRIBE = 9, 69


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_whose_start_is_told_late_are_worked_off_from_it(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    """Under KIP-848 the watch asks for the group meanwhile: it must not wait for the consumer, which waits for us."""
    handled: list[int] = []

    async def notes(record: Record) -> None:
        handled.append(record.offset)

    requests: Counter[int] = Counter()
    losing = True

    def decide(api: int) -> Fate:
        requests[api] += 1
        return Fate.LOSE_REQUEST if losing and api == OFFSET_FETCH else Fate.PASS

    settings = processor_settings(
        {"processor.handler": processors.handler(notes), "processor.group_protocol": protocol}, 1
    )
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(20)])
    with KafkaProxy(topics.bootstrap, decide) as proxy:
        kafka = settings.kafka.model_copy(update={"bootstrap_servers": proxy.bootstrap_servers})
        running = processors.start(settings.model_copy(update={"kafka": kafka}))
        try:
            assert proxy.lost.wait(60)
            if protocol == "consumer":
                asked = requests[CONSUMER_GROUP_DESCRIBE]
                wait_until(lambda: requests[CONSUMER_GROUP_DESCRIBE] > asked, 60, "the watch's question")
            losing = False
            wait_until(lambda: running.done == 20, 60, "all records")
        finally:  # it leaves the group through the proxy
            losing = False
            running.stop()
    assert handled == list(range(20))


def test_a_process_that_has_to_end_stops_asking(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    def decide(api: int) -> Fate:
        return Fate.HANG_UP if api == OFFSET_FETCH else Fate.PASS

    def asking() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("consumer_")]

    settings = processor_settings(
        {"processor.handler": processors.handler(done), "processor.drain_timeout_s": 1, "kafka.request_timeout_s": 5}, 1
    )
    before = len(asking())
    with KafkaProxy(topics.bootstrap, decide) as proxy:
        kafka = settings.kafka.model_copy(update={"bootstrap_servers": proxy.bootstrap_servers})
        running = processors.start(settings.model_copy(update={"kafka": kafka}))
        wait_until(lambda: len(asking()) > before, 60, "the thread that asks")
        wait_until(lambda: "no partitions assigned yet" in running.health.reasons, 60, "the question")
        running.service._fault.report(PermanentError("the end"))
        with pytest.raises(PermanentError, match="the end"):
            running.join()
        # The interpreter's end joins it.
        wait_until(lambda: len(asking()) == before, 60, "the end of the thread that asks")
