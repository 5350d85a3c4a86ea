"""Where partitions end is asked of the broker for a moment only, and every partition has its turn."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from processor.intake.assigned_log import AssignedLog
from processor.intake.log_ends import ROUND_S, LogEnds
from tests.unit.processor.parts import PLACE, iterate_until
from tests.unit.processor.pipeline_bench import PipelineBench


class SlowBroker:
    """Takes a fifth of a round for every answer; ``silent`` partitions get none."""

    def __init__(self, silent: frozenset[int] = frozenset()) -> None:
        self.now_s = 0.0
        self.asked: list[int] = []
        self._silent = silent

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        self.asked.append(partition.partition)
        if partition.partition in self._silent:
            self.now_s += timeout
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        self.now_s += ROUND_S / 5
        return 0, 10 + partition.partition


def owners(count: int) -> list[AssignedLog]:
    return [AssignedLog(("orders", number), None) for number in range(count)]


def test_a_round_is_bounded_and_the_next_one_continues_there() -> None:
    broker, ours = SlowBroker(), owners(12)
    ends = LogEnds(lambda: broker.now_s)
    for rounds in (1, 2, 3):
        ends.ask(broker, ours, lambda: True)
        assert broker.now_s < (rounds + 0.5) * ROUND_S
    assert broker.asked == list(range(12))
    assert [owner.high_watermark for owner in ours] == [10 + number for number in range(12)]
    ends.ask(broker, ours, lambda: True)
    assert broker.asked[12:] == list(range(5)), "from the beginning again"


def test_a_partition_without_an_answer_does_not_hold_up_the_others() -> None:
    broker, ours = SlowBroker(frozenset({0})), owners(3)
    ends = LogEnds(lambda: broker.now_s)
    ends.ask(broker, ours, lambda: True)
    assert broker.now_s <= ROUND_S
    ends.ask(broker, ours, lambda: True)
    assert broker.asked == [0, 1, 2]


def test_a_round_ends_when_it_is_unwanted() -> None:
    broker, ours = SlowBroker(), owners(6)
    ends = LogEnds(lambda: broker.now_s)
    ends.ask(broker, ours, lambda: len(broker.asked) < 2)
    assert broker.asked == [0, 1]
    ends.ask(broker, ours[4:], lambda: True)
    assert broker.asked == [0, 1, 4, 5]


async def test_a_paused_consumer_asks_for_the_ends_of_its_partitions() -> None:
    bench, broker = PipelineBench(), SlowBroker()
    consumer = bench.group_consumer
    owner = consumer.assigned[PLACE] = AssignedLog(PLACE, 0)
    consumer.consumer.assign([TopicPartition(*PLACE)])
    consumer.pause([PLACE])
    consumer.consumer = broker  # type: ignore[assignment]
    consumer.ask_ends(0.0)
    await iterate_until(lambda: owner.high_watermark == 10)
    consumer.ask_ends(0.1)
    assert broker.asked == [0], "it isn't asked again at once"
    await bench.pool.stop()
