"""A coordinator that moves refuses at once, again and again: it is asked with pauses, and no longer than we run."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from processor.consumed_topics import ConsumedTopics
from processor.start_offsets import ASK_PAUSE_S, StartOffsets
from wait_registry.errors import TransientError
from wait_registry.kafka.cluster import TopicIdentity

WAIT_TOPIC, NOTHING_KNOWN = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})


class MovingCoordinator:
    """Refuses ``refusals`` questions, then answers that nothing was ever committed."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self.left:
            self.left -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
        return [TopicPartition(p.topic, p.partition, -1001) for p in partitions]


def test_each_refusal_is_followed_by_a_pause() -> None:
    pauses: list[float] = []
    starts = StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, lambda pause_s: bool(pauses.append(pause_s)))

    asked = starts.of(MovingCoordinator(3), [TopicPartition("orders", 2)])

    assert [(p.topic, p.partition, p.offset) for p in asked] == [("orders", 2, OFFSET_BEGINNING)]
    assert pauses == [ASK_PAUSE_S] * 3


def test_a_process_that_is_to_end_begins_nowhere_and_reports_no_failure() -> None:
    starts = StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, lambda pause_s: True)

    assert starts.of(MovingCoordinator(1_000), [TopicPartition("orders", 2)]) == []


def test_what_the_consumer_is_not_told_another_client_is_asked_for() -> None:
    told: list[list[TopicPartition]] = [[], [TopicPartition("orders", 2, 17)]]

    def another(partitions: list[TopicPartition]) -> list[TopicPartition]:
        assert [(p.topic, p.partition) for p in partitions] == [("orders", 2)]
        if not told.pop(0):
            raise TransientError("no answer")
        return [TopicPartition("orders", 2, 17)]

    starts = StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, lambda pause_s: False, another=another)

    asked = starts.of(MovingCoordinator(1_000_000), [TopicPartition("orders", 2)])
    assert [(p.topic, p.partition, p.offset) for p in asked] == [("orders", 2, 17)]
    assert told == []
