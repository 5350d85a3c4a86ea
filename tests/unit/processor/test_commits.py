"""When partitions are lost, what a commit may have passed stays ours: the next owner may begin behind it (P1).

No refusal is clear enough: the client repeats a commit whose answer was lost, and shows the last answer alone.
"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, TopicPartition

from processor.assigned_partition import AssignedPartition
from processor.commits import ANSWER_LIMIT_S, Commits
from processor.ending import Fault
from processor.entry import EntryState
from processor.stats import Stats
from tests.unit.processor.parts import HaltedClock
from tests.unit.processor.pipeline_bench import PipelineBench

REFUSALS = [
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError._DESTROY,
    # What the broker says to the repetition, after the member was expelled.
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
]


class Bench:
    """Commits of one partition, whose first is confirmed at offset 3."""

    def __init__(self) -> None:
        self.clock, self.fault = HaltedClock(), Fault()
        self.sent: list[int] = []
        self.owner = AssignedPartition("input", 0, 3)
        self.commits = Commits(self.send, 1.0, self.clock, self.fault, Stats(), lambda owner: None)

    def send(self, targets: dict[AssignedPartition, int]) -> None:
        self.sent.append(targets[self.owner])

    def commit(self, committable: int) -> None:
        self.owner.committable = committable
        assert self.commits.due(self.clock.now_s)
        self.commits.commit([self.owner])
        self.clock.now_s += 1.0

    def answer(self, offset: int, code: int | None) -> None:
        error = None if code is None else KafkaError(code)
        self.commits.answered(error, [TopicPartition("input", 0, offset)])

    @property
    def offsets(self) -> tuple[int, int]:
        return self.owner.confirmed, self.owner.requested


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_leaves_the_offset_possible(code: int) -> None:
    bench = Bench()
    bench.commit(6)
    bench.answer(6, code)
    assert bench.offsets == (3, 6)
    assert bench.fault.error is None


def test_what_was_refused_is_asked_for_again() -> None:
    bench = Bench()
    bench.commit(6)
    bench.answer(6, KafkaError.REBALANCE_IN_PROGRESS)
    bench.commit(6)
    assert bench.sent == [6, 6]
    bench.answer(6, None)
    assert bench.offsets == (6, 6)


@pytest.mark.parametrize("late", [None, KafkaError._TRANSPORT, KafkaError.ILLEGAL_GENERATION])
def test_an_answer_to_a_superseded_commit_is_ignored(late: int | None) -> None:
    bench = Bench()
    bench.commit(6)
    bench.clock.now_s += ANSWER_LIMIT_S
    bench.commit(8)
    bench.answer(6, late)
    assert not bench.commits.idle
    assert bench.owner.requested == 8
    bench.answer(8, None)
    assert bench.commits.idle
    assert bench.offsets == (8, 8)


@pytest.mark.guarantee("P1.5")
@pytest.mark.parametrize("code", [None, *REFUSALS])
async def test_lost_partitions_are_divided_behind_what_may_be_committed(code: int | None) -> None:
    bench = PipelineBench()
    owner = bench.owner
    owner.confirmed = owner.requested = 3
    owner.committable = 6
    bench.commits.send = lambda targets: None
    bench.commits.commit([owner])
    if code is not None:
        bench.commits.answered(KafkaError(code), [TopicPartition("input", 0, 6)])
    entries = [bench.registered(offset, EntryState.READY) for offset in range(8)]
    bench.dispatcher.add(entries)
    bench.poll_loop.lost([owner])
    assert bench.dispatcher.offsets_of(owner) == list(range(6))
    await bench.dispatcher.stop()
