"""Each unfinished record counts once, until its outcome: `--once` and drains wait for nothing else (P7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message

from processor.entry import Entry, EntryState
from tests.unit.processor.parts import batch, entry
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.errors import PermanentError

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
Refuse = Callable[[PipelineBench, Entry], None]


def too_large(bench: PipelineBench, one: Entry) -> None:
    bench.registration.refused(one, TOO_LARGE)


def malformed(bench: PipelineBench, one: Entry) -> None:
    bench.registration.malformed(one, PermanentError("unreadable"))


REFUSALS = pytest.mark.parametrize("refuse", [too_large, malformed], ids=["too large", "malformed"])


class TwoOnTheirWay(PipelineBench):
    """Two records consumed, whose wait records aren't acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = entry(self.owner, 0), entry(self.owner, 1)
        self.committable.append(batch(self.first, self.second))
        self.outstanding.add(2, 2)

    def acknowledge(self, one: Entry) -> None:
        one.delivered(None, Message(topic="wait", partition=0, offset=one.offset))


@REFUSALS
async def test_an_unregistrable_record_counts_until_its_dead_letter_is_safe(refuse: Refuse) -> None:
    bench = TwoOnTheirWay()
    refuse(bench, bench.first)
    assert bench.outstanding.records == 2, "it takes room while the dead letter topic is away"
    bench.acknowledge(bench.second)
    assert bench.committable.advance() == []
    bench.answer_until(lambda: not bench.outbox.unacknowledged)
    assert (bench.outstanding.records, bench.outstanding.size) == (1, 1)
    assert bench.first.state is EntryState.FINISHED
    assert bench.committable.advance() == [bench.first, bench.second]
    assert bench.owner.committable == 2


@REFUSALS
@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_one_whose_partition_moves_before_that_is_counted_out_once(how: str, refuse: Refuse) -> None:
    bench = TwoOnTheirWay()
    refuse(bench, bench.first)
    getattr(bench.rebalance, how)([bench.owner])
    assert bench.outstanding.records == 0
    bench.answer_until(lambda: not bench.outbox.unacknowledged)
    assert (bench.outstanding.records, bench.outstanding.size) == (0, 0)
    assert bench.first.state is EntryState.DROPPED


async def test_one_whose_partition_moves_after_that_is_counted_out_once() -> None:
    bench = TwoOnTheirWay()
    too_large(bench, bench.first)
    bench.answer_until(lambda: not bench.outbox.unacknowledged)
    bench.rebalance.lost([bench.owner])
    assert (bench.outstanding.records, bench.outstanding.size) == (0, 0)
    assert bench.first.state is EntryState.FINISHED


async def test_a_refusal_after_a_rebalance_is_left_to_the_next_owner() -> None:
    bench = TwoOnTheirWay()
    bench.rebalance.lost([bench.owner])
    too_large(bench, bench.first)
    bench.acknowledge(bench.second)
    assert (bench.outstanding.records, bench.outbox.unacknowledged) == (0, 0)
    bench.committable.advance()
    assert len(bench.committable) == 0, "it holds up nothing behind it"
