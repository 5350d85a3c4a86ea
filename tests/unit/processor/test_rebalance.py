"""What happens to records that haven't started when their partition moves: committed ones stay, the others go (P1)."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.commits import Commits
from processor.committable import CommittableOffsets
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.handlers.python import AsynchronousHandler
from processor.outbox import Outbox
from processor.prefetch import Outstanding
from processor.rebalance import Rebalance
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import batch, entry, iterate_until
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
CONFIRMED, REQUESTED, PREFIX = 3, 6, 10


class Bench:
    """A handler that never ends at offset 0, nine more registered records of the partition, two on their way."""

    def __init__(self) -> None:
        settings = ProcessorSettings(max_in_flight=1)
        limits, fault, stats = time_limits(settings), Fault(), Stats()
        decision = RetryDecision(settings, limits, lambda: 0.0)
        self.settled: list[int] = []
        # Nothing is sent: what would be waits in its queue, to be counted.
        self.producer = Producer({"bootstrap.servers": ""})
        self.outbox, self.outstanding = Outbox(self.producer, fault), Outstanding()
        attempts = Attempts(AsynchronousHandler(self._handle), settings.handler_timeout_s, decision, CLOCK, stats)
        watchdog = DeadlineWatchdog(CLOCK, settings.handler_timeout_s)
        self.dispatcher = Dispatcher(1, "group", attempts, watchdog, CLOCK, fault, self._settle, lambda renewed: None)
        committable = CommittableOffsets()
        commits = Commits(lambda targets: None, 1.0, CLOCK, fault, stats, lambda owner: None)
        self.rebalance = Rebalance(committable, self.dispatcher, self.outstanding, commits, fault)
        self.owner = AssignedPartition("input", 0)
        self.owner.confirmed, self.owner.requested, self.owner.committable = CONFIRMED, REQUESTED, PREFIX
        self.registered = [entry(self.owner, offset) for offset in range(PREFIX)]
        self.on_their_way = [entry(self.owner, offset) for offset in range(PREFIX, PREFIX + 2)]
        committable.append(batch(*self.on_their_way))
        self.outstanding.add(PREFIX + 2, PREFIX + 2)

    def _settle(self, settled: Entry, result: Result, elapsed_s: float) -> None:
        self.settled.append(settled.offset)

    @staticmethod
    async def _handle(record: Record) -> None:
        await asyncio.sleep(3600)

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
    bench = Bench()
    await bench.begin()
    if how == "revoked":
        assert bench.rebalance.revoked([bench.owner]) == {bench.owner: REQUESTED}, "not past the first unstarted"
    else:
        bench.rebalance.lost([bench.owner])
    assert bench.kept() == list(range(1, REQUESTED)), "no other process will see these"
    assert bench.dropped() == list(range(REQUESTED, PREFIX + 2))
    assert bench.outstanding.records == REQUESTED
    await bench.dispatcher.stop()


@pytest.mark.guarantee("P1.6")
@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_no_tombstone_is_written_because_a_partition_moves(how: str) -> None:
    bench = Bench()
    await bench.begin()
    getattr(bench.rebalance, how)([bench.owner])
    assert bench.dropped()
    assert (bench.settled, len(bench.producer), bench.outbox.unacknowledged) == ([], 0, 0)
    await bench.dispatcher.stop()
