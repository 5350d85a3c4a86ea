"""P1, P4: a group ended by `--once` leaves nothing in its wait topic that it is about to register in the next one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.test_rebalance import Gate
from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import holds, wait_until
from wait_registry.settings.root import Settings

PARTITIONS = 2


def test_a_stopped_processor_finishes_in_the_old_wait_topic(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    gate = Gate(free=PARTITIONS * 4)
    old = processor_settings(
        {
            "processor.handler": processors.handler(gate),
            "processor.max_in_flight": 2,
            "processor.commit_interval_s": 60,
        },
        PARTITIONS,
    )
    new = old.model_copy(update={"wait": old.wait.model_copy(update={"topic": f"{old.wait.topic}.next"})})
    topics.create_own(new)
    topic = old.processor.topics[0]

    def produce(each: int) -> int:
        topics.produce(
            topic, [Outgoing(b"value", partition=number % PARTITIONS) for number in range(PARTITIONS * each)]
        )
        return PARTITIONS * each

    written = produce(4)
    first = processors.start(old)
    wait_until(lambda: first.done == written, what="the free records: the first windows of all partitions")
    written += produce(5)
    wait_until(lambda: first.stats.registered == written and len(gate.calls) == 10, what="records that wait for a slot")
    first.service.request_stop()
    wait_until(lambda: "draining" in first.health.reasons, what="the drain")
    gate.opened.set()
    first.join()
    position = committed(topics.bootstrap, old.processor.group, topic, PARTITIONS)
    given_back = [place for place, story in stories(topics.read(old.wait.topic)).items() if not story.resolved]
    assert given_back, "registered, and neither started nor committed"
    assert all(offset >= position[partition] for _, partition, offset in given_back), "all of it is consumed again"

    last = processors.start(old, once=True)
    while not last.ended:
        written += produce(2)
    last.join()
    told = stories(topics.read(old.wait.topic))
    assert all(story.resolved for story in told.values()), "nothing is left for a sweeper of the old topic"
    assert len(told) == sum(committed(topics.bootstrap, old.processor.group, topic, PARTITIONS))

    written += produce(2)
    processors.run_once(new)
    newer = stories(topics.read(new.wait.topic))
    assert all(story.resolved for story in newer.values())
    assert not told.keys() & newer.keys(), "no record is registered in both"
    assert len(gate.calls) == len(told) + len(newer) == written
    assert set(gate.calls.values()) == {1}


@pytest.mark.guarantee("P4.18")
def test_once_does_not_end_while_records_are_unfinished(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    gate = Gate(free=0)
    settings = processor_settings({"processor.handler": processors.handler(gate), "processor.max_in_flight": 2}, 1)
    topics.produce(settings.processor.topics[0], [b"value"] * 6)
    running = processors.start(settings, once=True)
    wait_until(lambda: running.stats.registered == 6 and len(gate.calls) == 2, what="records that wait for a slot")
    holds(lambda: "draining" not in running.health.reasons, 1.0, "no drain with unfinished records")
    gate.opened.set()
    running.join()
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 6 and all(story.resolved for story in told.values())
