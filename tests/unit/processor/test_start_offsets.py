"""A coordinator that moves refuses at once, again and again: it is asked with pauses, and as long as it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.partition_start import Start
from processor.intake.start_offsets import ASK_AT_ONCE_S, ASK_PAUSE_S, StartOffsets
from wait_registry.errors import TransientError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata

WAIT_TOPIC, NOTHING_KNOWN = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})
PARTITION = TopicPartition("orders", 2)
COMMITS = CommitMetadata(WAIT_TOPIC)


class Coordinator:
    """Refuses ``refusals`` questions, then answers that nothing was ever committed."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout == ASK_AT_ONCE_S, "a rebalance waits"
        if self.left:
            self.left -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
        return [TopicPartition(p.topic, p.partition, -1001) for p in partitions]

    def asked_by_another(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if self.left:
            self.left -= 1
            raise TransientError("no answer")
        return [TopicPartition(p.topic, p.partition, 17) for p in partitions]


def start_offsets(
    stopping: Callable[[float], bool], another: Callable[[list[TopicPartition]], list[TopicPartition]]
) -> StartOffsets:
    def ends(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 99)

    return StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, stopping, another, ends, lambda places: dict.fromkeys(places, 7))


@pytest.mark.guarantee("P8.5")
def test_the_consumer_is_asked_once_since_a_rebalance_waits_for_it() -> None:
    def nobody(partitions: list[TopicPartition]) -> list[TopicPartition]:
        raise AssertionError("a client of its own takes its time to connect")

    starts = start_offsets(lambda pause_s: False, nobody)

    assert starts.at_once(Coordinator(1), [PARTITION]) is None
    assert starts.at_once(Coordinator(0), [PARTITION]) == [Start("orders", 2, None, None, 99, COMMITS)]


def test_each_refusal_is_followed_by_a_pause() -> None:
    pauses: list[float] = []
    coordinator = Coordinator(3)
    starts = start_offsets(lambda pause_s: bool(pauses.append(pause_s)), coordinator.asked_by_another)

    assert starts.later([PARTITION], lambda: True) == [Start("orders", 2, 17, None, 99, COMMITS)]
    assert pauses == [ASK_PAUSE_S] * 4


def test_a_process_that_is_to_end_begins_nowhere_and_reports_no_failure() -> None:
    starts = start_offsets(lambda pause_s: True, Coordinator(1_000).asked_by_another)

    assert starts.later([PARTITION], lambda: True) == []


def test_unwanted_start_offsets_are_requested_no_more() -> None:
    wanted = [True, True, False]
    coordinator = Coordinator(1_000)
    starts = start_offsets(lambda pause_s: False, coordinator.asked_by_another)

    assert starts.later([PARTITION], lambda: wanted.pop(0)) == []
    assert coordinator.left == 998
