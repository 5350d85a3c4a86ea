"""What happens to records that haven't started when their partition moves: committed ones stay, the others go (P1)."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer

from processor.assigned_partition import AssignedPartition
from processor.commits import Commits
from processor.committable import CommittableOffsets
from processor.entry import Entry, EntryState
from processor.outbox import Outbox
from processor.prefetch import Outstanding
from processor.rebalance import Rebalance
from processor.stats import Stats
from tests.unit.processor.dispatch_bench import CLOCK, DispatchBench
from tests.unit.processor.parts import batch, entry, iterate_until
from wait_registry.handler import Record

CONFIRMED, REQUESTED, PREFIX = 3, 6, 10


async def endless(record: Record) -> None:
    await asyncio.sleep(3600)


class MovingPartition:
    """A handler that never ends at offset 0, nine more registered records of the partition, two on their way."""

    def __init__(self) -> None:
        self.bench = DispatchBench(endless)
        self.dispatcher, fault = self.bench.dispatcher, self.bench.fault
        # Nothing is sent: what would be waits in its queue, to be counted.
        self.producer = Producer({"bootstrap.servers": ""})
        self.outbox, self.outstanding = Outbox(self.producer, fault), Outstanding()
        committable = CommittableOffsets()
        commits = Commits(lambda targets: None, 1.0, CLOCK, fault, Stats(), lambda owner: None)
        self.rebalance = Rebalance(committable, self.dispatcher, self.outstanding, commits, fault)
        self.owner = AssignedPartition("input", 0)
        self.owner.confirmed, self.owner.requested, self.owner.committable = CONFIRMED, REQUESTED, PREFIX
        self.registered = [entry(self.owner, offset) for offset in range(PREFIX)]
        self.on_their_way = [entry(self.owner, offset) for offset in range(PREFIX, PREFIX + 2)]
        committable.append(batch(*self.on_their_way))
        self.outstanding.add(PREFIX + 2, PREFIX + 2)

    async def begin(self) -> None:
        self.dispatcher.add(self.registered)
        await iterate_until(lambda: self.dispatcher.running)

    def kept(self) -> list[int]:
        return self.dispatcher.offsets_of(self.owner)

    def dropped(self) -> list[int]:
        entries: list[Entry] = [*self.registered, *self.on_their_way]
        return [one.offset for one in entries if one.state is EntryState.DROPPED]


@pytest.mark.guarantee("P1.4")
@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_what_may_be_committed_stays_and_the_rest_is_the_next_owners(how: str) -> None:
    moving = MovingPartition()
    await moving.begin()
    if how == "revoked":
        assert moving.rebalance.revoked([moving.owner]) == {moving.owner: REQUESTED}, "not past the first unstarted"
    else:
        moving.rebalance.lost([moving.owner])
    assert moving.kept() == list(range(1, REQUESTED)), "no other process will see these"
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
    assert (moving.bench.settled, len(moving.producer), moving.outbox.unacknowledged) == ([], 0, 0)
    await moving.dispatcher.stop()
