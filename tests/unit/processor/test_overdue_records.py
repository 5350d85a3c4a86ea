"""A record that waits for a worker, or for its partition's gate, is registered again before its time is up."""

from __future__ import annotations

import itertools

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.handlers.python import AsynchronousHandler
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import LONG, entry, iterate_until
from tests.unit.processor.pipeline_bench import CLOCK, OVERDUE, PipelineBench
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings

OWNER, OTHER = AssignedPartition("input", 0), AssignedPartition("input", 1)


class Bench:
    """A dispatcher whose one worker hasn't begun yet."""

    def __init__(self) -> None:
        settings = ProcessorSettings(max_in_flight=1)
        decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
        self.started: list[int] = []
        self.renewed: list[Entry] = []
        attempts = Attempts(AsynchronousHandler(self._handle), 30.0, decision, CLOCK, Stats())
        self.dispatcher = Dispatcher(
            1, "group", attempts, DeadlineWatchdog(CLOCK, 30.0), CLOCK, Fault(), self._settle, self.renewed.append
        )

    async def _handle(self, record: Record) -> None:
        self.started.append(record.offset)

    def _settle(self, one: Entry, result: Result, elapsed_s: float) -> None:
        pass


async def test_an_overdue_record_behind_a_renewed_one_is_renewed() -> None:
    bench = Bench()
    bench.dispatcher.add([entry(OWNER, 5, OVERDUE), entry(OWNER, 6)])
    bench.dispatcher.add_first(entry(OWNER, 4))
    bench.dispatcher.renew_overdue()
    assert [one.offset for one in bench.renewed] == [5]
    assert bench.dispatcher.waiting == 2


async def test_an_overdue_record_is_found_wherever_it_waits() -> None:
    for order in itertools.permutations([0, 1, 2]):
        bench = Bench()
        # Records of a gate that opened late are older than those before them.
        bench.dispatcher.add([entry(OTHER, offset, OVERDUE if offset == 1 else LONG) for offset in order])
        bench.dispatcher.renew_overdue()
        assert [one.offset for one in bench.renewed] == [1]
        assert bench.dispatcher.offsets_of(OTHER) == [offset for offset in order if offset != 1]


async def test_an_overdue_renewed_record_is_renewed_once_more() -> None:
    bench = Bench()
    bench.dispatcher.add_first(entry(OWNER, 4, OVERDUE))
    bench.dispatcher.renew_overdue()
    assert [one.offset for one in bench.renewed] == [4]
    assert bench.dispatcher.waiting == 0


async def test_renewed_records_start_first_and_in_the_order_of_their_renewal() -> None:
    bench = Bench()
    bench.dispatcher.add([entry(OWNER, 5), entry(OWNER, 6)])
    bench.dispatcher.add_first(entry(OWNER, 1))
    bench.dispatcher.add_first(entry(OWNER, 2))
    assert bench.dispatcher.offsets_of(OWNER) == [1, 2, 5, 6]
    await iterate_until(lambda: len(bench.started) == 4)
    assert bench.started == [1, 2, 5, 6]
    await bench.dispatcher.stop()


async def test_renewed_records_are_dropped_with_their_partition() -> None:
    bench = Bench()
    bench.dispatcher.add([entry(OWNER, 5), entry(OTHER, 6)])
    bench.dispatcher.add_first(entry(OWNER, 4))
    assert [one.offset for one in bench.dispatcher.drop(OWNER, 4)] == [4, 5]
    assert bench.dispatcher.waiting == 1


async def test_a_record_held_by_the_warm_up_is_renewed_and_held_again() -> None:
    bench = PipelineBench()
    warm_up = bench.owner.warm_up
    held, fresh = bench.registered(0, EntryState.HELD, OVERDUE), bench.registered(1, EntryState.HELD)
    for one in (held, fresh):
        warm_up.hold(one.offset, one)
    bench.poll_loop.run_housekeeping(CLOCK.monotonic())
    assert bench.registration.renewing == {held}
    assert warm_up.held() == [(1, fresh)]
    bench.answer_until(lambda: not bench.registration.renewing)
    assert held.lifetime != OVERDUE
    assert {one for _, one in warm_up.held()} == {held, fresh}
    assert bench.dispatcher.waiting == 0
    bench.commits.confirm(bench.owner, 2)
    assert sorted(bench.dispatcher.offsets_of(bench.owner)) == [0, 1]


async def test_a_record_renewed_while_its_commit_is_confirmed_starts() -> None:
    bench = PipelineBench()
    held = bench.registered(0, EntryState.HELD, OVERDUE)
    bench.owner.warm_up.hold(0, held)
    bench.poll_loop.run_housekeeping(CLOCK.monotonic())
    bench.commits.confirm(bench.owner, 1)
    assert bench.dispatcher.waiting == 0, "not before its second registration is acknowledged"
    bench.answer_until(lambda: not bench.registration.renewing)
    assert bench.dispatcher.offsets_of(bench.owner) == [0]
