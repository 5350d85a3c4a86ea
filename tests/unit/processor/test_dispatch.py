"""At most N handlers at once, in the order of registration, none without enough time left, none after a stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import threading

import pytest

from processor.attempts import Result
from processor.entry import Entry, EntryState
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.handlers.threads import NoThreadError, Threads
from tests.unit.processor.dispatch_bench import OTHER, OWNER, DispatchBench
from tests.unit.processor.parts import LONG, endless, entry, iterate_until
from tests.unit.processor.pipeline_bench import OVERDUE, done
from wait_registry.handler import Record


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

    bench = DispatchBench(handler, 5)
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

    bench = DispatchBench(handler, 3)
    for round_ in range(20):
        bench.dispatcher.add([entry(OWNER, round_ * 3 + number) for number in range(3)])
        await bench.settle_all(3 * (round_ + 1))
    assert len(bench.dispatcher.workers) <= 3
    await bench.dispatcher.stop()


@pytest.mark.guarantee("P3.16")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_record_with_too_little_time_left_is_renewed(kind: str) -> None:
    def plain(record: Record) -> None:
        assert record.offset != 1

    async def handler(record: Record) -> None:
        plain(record)

    bench = DispatchBench(AsynchronousHandler(handler) if kind == "async" else PlainFunctionHandler(plain, 1))
    overdue = entry(OWNER, 1, OVERDUE)
    bench.dispatcher.add([entry(OWNER, 0), overdue, entry(OWNER, 2)])
    await bench.settle_all(2)
    assert bench.renewed == [overdue]
    await bench.dispatcher.stop()


async def test_waiting_records_are_renewed_although_all_workers_are_busy() -> None:
    bench = DispatchBench(endless)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    bench.dispatcher.add([entry(OWNER, 1, OVERDUE), entry(OWNER, 2)])
    bench.dispatcher.renew_overdue()
    assert [one.offset for one in bench.renewed] == [1]
    assert bench.dispatcher.waiting == 1
    await bench.dispatcher.stop()


@pytest.mark.parametrize(
    ("renewed", "others", "overdue"),
    [
        # Records of a gate that opened late are older than those before them.
        *[([], order, 1) for order in itertools.permutations([0, 1, 2])],
        ([4], [5, 6], 5),
        ([4], [], 4),
    ],
)
async def test_an_overdue_record_is_found_wherever_it_waits(
    renewed: list[int], others: list[int], overdue: int
) -> None:
    bench = DispatchBench(done)
    entries = {offset: entry(OTHER, offset, OVERDUE if offset == overdue else LONG) for offset in (*renewed, *others)}
    bench.dispatcher.add([entries[offset] for offset in others])
    for offset in renewed:
        bench.dispatcher.add_first(entries[offset])
    bench.dispatcher.renew_overdue()
    assert [one.offset for one in bench.renewed] == [overdue]
    assert bench.dispatcher.offsets_of(OTHER) == [offset for offset in entries if offset != overdue]


async def test_renewed_records_start_first_and_in_the_order_of_their_renewal() -> None:
    bench = DispatchBench(done)
    bench.dispatcher.add([entry(OWNER, 5), entry(OWNER, 6)])
    bench.dispatcher.add_first(entry(OWNER, 1))
    bench.dispatcher.add_first(entry(OWNER, 2))
    assert bench.dispatcher.offsets_of(OWNER) == [1, 2, 5, 6]
    await bench.settle_all(4)
    assert bench.settled_offsets == [1, 2, 5, 6]
    await bench.dispatcher.stop()


async def test_dropped_records_are_those_of_the_partition_from_the_offset_on() -> None:
    bench = DispatchBench(done)
    bench.dispatcher.add([entry(OWNER, 4), entry(OTHER, 9), entry(OWNER, 6), entry(OWNER, 7)])
    bench.dispatcher.add_first(entry(OWNER, 5))
    assert bench.dispatcher.offsets_of(OWNER) == [5, 4, 6, 7]
    assert [one.offset for one in bench.dispatcher.drop(OWNER, 5)] == [5, 6, 7]
    await bench.settle_all(2)
    assert [(one.owner, one.offset) for one, _ in bench.settled] == [(OWNER, 4), (OTHER, 9)]
    await bench.dispatcher.stop()


async def test_an_error_in_the_settlement_is_not_lost() -> None:
    def breaks(one: Entry, result: Result, elapsed_s: float) -> None:
        raise ZeroDivisionError

    bench = DispatchBench(done, 1, breaks)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.fault.error)
    assert isinstance(bench.fault.error, ZeroDivisionError)


async def test_a_worker_stopped_during_a_clean_up_ends() -> None:
    cleaning = asyncio.Event()
    calls: list[int] = []

    async def handler(record: Record) -> None:
        calls.append(record.offset)
        try:
            await asyncio.sleep(3600)
        finally:
            cleaning.set()
            await asyncio.sleep(3600)

    bench = DispatchBench(handler)
    one = entry(OWNER, 0)
    bench.dispatcher.add([one])
    await iterate_until(lambda: calls)
    bench.watchdog.cancel_overdue(math.inf)
    await cleaning.wait()
    await bench.dispatcher.stop()
    assert all(worker.cancelled() for worker in bench.dispatcher.workers)
    assert calls == [0], "not tried again"
    assert (bench.settled, one.state) == ([], EntryState.STARTED)


async def test_an_error_that_stopping_made_the_handler_raise_is_no_outcome() -> None:
    async def handler(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise ValueError("while cleaning up") from None

    bench = DispatchBench(handler)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    await bench.dispatcher.stop()
    assert bench.settled == []
    assert bench.fault.error is None


async def test_an_answer_while_stopping_is_settled() -> None:
    async def stubborn(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    bench = DispatchBench(stubborn)
    first = entry(OWNER, 0)
    bench.dispatcher.add([first, entry(OWNER, 1)])
    await iterate_until(lambda: bench.dispatcher.running)
    await bench.dispatcher.stop()
    assert bench.settled == [(first, None)]
    assert all(worker.done() for worker in bench.dispatcher.workers)
    assert (bench.dispatcher.waiting, bench.dispatcher.running) == (1, 0)


@pytest.mark.parametrize("worked_before", [False, True], ids=["no worker yet", "a worker that rested"])
async def test_a_record_that_comes_after_stopping_starts_nothing(worked_before: bool) -> None:
    bench = DispatchBench(done)
    if worked_before:
        bench.dispatcher.add([entry(OWNER, 0)])
        await iterate_until(lambda: bench.settled)
    before = len(bench.settled)
    await bench.dispatcher.stop()
    bench.dispatcher.add_first(entry(OWNER, 1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(bench.settled) == before
    assert all(worker.done() for worker in bench.dispatcher.workers)
    assert bench.dispatcher.waiting == 1


async def test_a_handler_that_ignores_cancellation_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    released = asyncio.Event()

    async def refuses(record: Record) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    bench = DispatchBench(refuses, stop_limit_s=0.01)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    with caplog.at_level(logging.WARNING):
        await bench.dispatcher.stop()
    assert "1 handlers" in caplog.text
    released.set()
    await iterate_until(lambda: bench.settled)


def refuse_to_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_without_a_thread_no_record_gets_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Record] = []
    handler = PlainFunctionHandler(calls.append, 1)
    bench = DispatchBench(handler)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_to_start)
        bench.dispatcher.add([entry(OWNER, 0)])
        await iterate_until(lambda: bench.fault.error or bench.settled)
    assert (bench.settled, calls) == ([], [])
    assert isinstance(bench.fault.error, NoThreadError)
    assert "can't start new thread" in str(bench.fault.error)
    assert handler.slots is not None
    assert (handler.slots.free, handler.slots.blocked) == (1, 0)
    await bench.dispatcher.stop()


def test_a_thread_that_did_not_start_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ran = Threads(1), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_to_start)
        with pytest.raises(NoThreadError):
            threads.submit(ran.set)
    threads.submit(ran.set)
    assert ran.wait(30)
    threads.close()
