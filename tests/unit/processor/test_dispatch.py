"""At most N handlers at once, in the order of registration, none without enough time left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.handlers.open_handler import OpenHandler
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import LONG, entry, iterate_until
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
OWNER = AssignedPartition("input", 0)
OVERDUE = LONG._replace(start_by_s=-1.0)


class Bench:
    """A dispatcher whose results are collected."""

    def __init__(
        self, handler: OpenHandler, n: int, settle: Callable[[Entry, Result, float], None] | None = None
    ) -> None:
        settings = ProcessorSettings(max_in_flight=n)
        decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
        self.fault = Fault()
        self.settled: list[Entry] = []
        self.renewed: list[Entry] = []
        attempts = Attempts(handler, settings.handler_timeout_s, decision, CLOCK, Stats())
        watchdog = DeadlineWatchdog(CLOCK, settings.handler_timeout_s)
        self.dispatcher = Dispatcher(
            n, "group", attempts, watchdog, CLOCK, self.fault, settle or self._settle, self.renewed.append
        )

    def _settle(self, one: Entry, result: Result, elapsed_s: float) -> None:
        assert result is None
        self.settled.append(one)

    async def settle_all(self, count: int) -> None:
        while len(self.settled) < count:
            assert self.fault.error is None
            await asyncio.sleep(0)


def _breaks(one: Entry, result: Result, elapsed_s: float) -> None:
    raise ZeroDivisionError


@pytest.mark.guarantee("P7.2")
async def test_n_handlers_run_at_once_and_they_start_in_order() -> None:
    running, most, started = 0, 0, []

    async def handler(record: Record) -> None:
        nonlocal running, most
        started.append(record.offset)
        running += 1
        most = max(most, running)
        for _ in range(record.offset % 7):
            await asyncio.sleep(0)
        running -= 1

    bench = Bench(AsynchronousHandler(handler), 5)
    for first in range(0, 100, 10):
        bench.dispatcher.add([entry(OWNER, offset) for offset in range(first, first + 10)])
        await asyncio.sleep(0)
    await bench.settle_all(100)
    assert most == 5
    assert started == list(range(100))
    assert bench.dispatcher.running == bench.dispatcher.waiting == 0
    await bench.dispatcher.stop()


async def test_resting_workers_are_woken_for_records_that_come_later() -> None:
    async def handler(record: Record) -> None:
        await asyncio.sleep(0)

    bench = Bench(AsynchronousHandler(handler), 3)
    for round_ in range(20):
        bench.dispatcher.add([entry(OWNER, round_ * 3 + number) for number in range(3)])
        await bench.settle_all(3 * (round_ + 1))
    assert len(bench.dispatcher.workers) <= 3
    await bench.dispatcher.stop()


@pytest.mark.guarantee("P3.16")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_record_with_too_little_time_left_is_renewed(kind: str) -> None:
    async def handler(record: Record) -> None:
        assert record.offset != 1

    def plain(record: Record) -> None:
        assert record.offset != 1

    bench = Bench(AsynchronousHandler(handler) if kind == "async" else PlainFunctionHandler(plain, 1), 1)
    overdue = entry(OWNER, 1, OVERDUE)
    bench.dispatcher.add([entry(OWNER, 0), overdue, entry(OWNER, 2)])
    await bench.settle_all(2)
    assert bench.renewed == [overdue]
    await bench.dispatcher.stop()


async def test_waiting_records_are_renewed_although_all_workers_are_busy() -> None:
    async def endless(record: Record) -> None:
        await asyncio.sleep(60)

    bench = Bench(AsynchronousHandler(endless), 1)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    bench.dispatcher.add([entry(OWNER, 1, OVERDUE), entry(OWNER, 2)])
    bench.dispatcher.renew_overdue()
    assert [one.offset for one in bench.renewed] == [1]
    assert bench.dispatcher.waiting == 1
    await bench.dispatcher.stop()


async def test_a_renewed_record_starts_before_all_others() -> None:
    started = []

    async def handler(record: Record) -> None:
        started.append(record.offset)

    bench = Bench(AsynchronousHandler(handler), 1)
    bench.dispatcher.add([entry(OWNER, 5), entry(OWNER, 6)])
    bench.dispatcher.add_first(entry(OWNER, 1))
    await bench.settle_all(3)
    assert started == [1, 5, 6]
    await bench.dispatcher.stop()


async def test_dropped_records_are_those_of_the_partition_from_the_offset_on() -> None:
    async def handler(record: Record) -> None:
        pass

    other = AssignedPartition("input", 1)
    bench = Bench(AsynchronousHandler(handler), 1)
    bench.dispatcher.add([entry(OWNER, 4), entry(other, 9), entry(OWNER, 5), entry(OWNER, 6)])
    assert bench.dispatcher.offsets_of(OWNER) == [4, 5, 6]
    assert [one.offset for one in bench.dispatcher.drop(OWNER, 5)] == [5, 6]
    await bench.settle_all(2)
    assert [(one.owner, one.offset) for one in bench.settled] == [(OWNER, 4), (other, 9)]
    await bench.dispatcher.stop()


async def test_stopping_leaves_running_records_without_an_outcome() -> None:
    async def endless(record: Record) -> None:
        await asyncio.sleep(60)

    bench = Bench(AsynchronousHandler(endless), 2)
    running = entry(OWNER, 0)
    bench.dispatcher.add([running])
    await iterate_until(lambda: bench.dispatcher.running)
    await bench.dispatcher.stop()
    assert bench.settled == []
    assert running.state is EntryState.STARTED
    assert bench.fault.error is None


async def test_an_error_in_the_settlement_is_not_lost() -> None:
    async def handler(record: Record) -> None:
        pass

    bench = Bench(AsynchronousHandler(handler), 1, _breaks)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.fault.error)
    assert isinstance(bench.fault.error, ZeroDivisionError)
