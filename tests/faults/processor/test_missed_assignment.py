"""A member that never got the answer with its new assignment notices, and its group continues (KIP-848)."""

from __future__ import annotations

import logging
import struct
from contextlib import closing

import pytest
from confluent_kafka import TopicCollection

from processor.intake import broker_watch
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import group_member
from tests.support.tcp_proxy import KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until

CONSUMER_GROUP_HEARTBEAT = 68
PARTITIONS = 4


class _Loss:
    """Loses the first answer to a member's heartbeat that has a new assignment of a topic, once it is wanted."""

    def __init__(self, topics: Topics, topic: str) -> None:
        described = topics.admin.describe_topics(TopicCollection([topic]))[topic].result(15)
        bits = (described.topic_id.get_most_significant_bits(), described.topic_id.get_least_significant_bits())
        self._topic_id = struct.pack(">qq", *bits)
        self.wanted = self.happened = False

    def change(self, api_key: int, answer: bytes) -> bytes | None:
        if not self.wanted or api_key != CONSUMER_GROUP_HEARTBEAT or self._topic_id not in answer:
            return answer
        self.wanted, self.happened = False, True
        return None


@pytest.mark.fault("F27")
def test_a_member_that_missed_an_assignment_joins_again(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_watch, "COMPARE_EVERY_S", 1.0)
    caplog.set_level(logging.INFO)
    at = processor_scenario(partitions=PARTITIONS, group_protocol="consumer")
    loss = _Loss(at.topics, at.topic)
    with KafkaProxy(at.topics.bootstrap, change=loss.change) as proxy:
        running = at.start(proxy.bootstrap_servers).wait_joined()
        loss.wanted = True
        with closing(group_member(at.topics.bootstrap, at.group, [at.topic])) as other:
            # Without the comparison the coordinator waits for the processor for max.poll.interval.ms, five minutes.
            # Half of them, or one more, since the processor has the redelivery topic, too.
            wait_until(lambda: other.poll(0.1) is None and len(other.assignment()) >= PARTITIONS // 2, 60, "its share")
        assert loss.happened
        at.produce_to_each(1)
        wait_until(lambda: running.done == PARTITIONS, 60, "work on all partitions, when the other one is gone")
        running.stop()
    assert "joining the group again" in caplog.text
