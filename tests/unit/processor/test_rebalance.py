"""What happens to records that haven't started when their partition moves: committed ones stay, the others go (P1)."""

from __future__ import annotations

import pytest

from processor.entry import EntryState
from tests.unit.processor.parts import batch, endless, entry, iterate_until
from tests.unit.processor.pipeline_bench import PipelineBench

CONFIRMED, REQUESTED, PREFIX = 3, 6, 10


class MovingPartition(PipelineBench):
    """A handler that never ends at offset 0, nine more registered records of the partition, two on their way."""

    def __init__(self) -> None:
        super().__init__(endless)
        self.owner.confirmed, self.owner.requested, self.owner.committable = CONFIRMED, REQUESTED, PREFIX
        self.ready = [self.registered(offset, EntryState.READY) for offset in range(PREFIX)]
        self.on_their_way = [entry(self.owner, offset) for offset in range(PREFIX, PREFIX + 2)]
        self.committable.append(batch(*self.on_their_way))
        self.outstanding.add(2, 2)

    async def begin(self) -> None:
        self.dispatcher.add(self.ready)
        await iterate_until(lambda: self.dispatcher.running)

    def dropped(self) -> list[int]:
        return [one.offset for one in (*self.ready, *self.on_their_way) if one.state is EntryState.DROPPED]


@pytest.mark.guarantee("P1.4")
@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_what_may_be_committed_stays_and_the_rest_is_the_next_owners(how: str) -> None:
    moving = MovingPartition()
    await moving.begin()
    if how == "revoked":
        assert moving.rebalance.revoked([moving.owner]) == {moving.owner: REQUESTED}, "not past the first unstarted"
    else:
        moving.rebalance.lost([moving.owner])
    assert moving.dispatcher.offsets_of(moving.owner) == list(range(1, REQUESTED)), "no other process will see these"
    assert moving.dropped() == list(range(REQUESTED, PREFIX + 2))
    assert moving.outstanding.records == REQUESTED
    await moving.dispatcher.stop()


@pytest.mark.guarantee("P1.6")
@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_no_tombstone_is_written_because_a_partition_moves(how: str) -> None:
    moving = MovingPartition()
    await moving.begin()
    getattr(moving.rebalance, how)([moving.owner])
    assert moving.dropped()
    assert (len(moving.producer), moving.outbox.unacknowledged) == (0, 0)
    await moving.dispatcher.stop()
