"""At most N calls at once; a call that is cancelled has no outcome, and none begins after a stop."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from decimal import getcontext
from typing import Any

import pytest

from processor.calls.deadline import DeadlineWatchdog
from processor.calls.worker_pool import WorkerPool
from processor.handlers.descriptors import NoThreadError
from processor.handlers.python import PlainFunctionHandler
from processor.inbox import Inbox
from processor.protocol.events import CallsEnded
from processor.protocol.record import Entry
from processor.protocol.results import Discarded, Done, Failed, Result
from tests.unit.processor.loop_bench import LoopBench
from tests.unit.processor.parts import (
    CLOCK,
    attempts_of,
    done,
    endless,
    entries,
    fails_when_cancelled,
    iterate_until,
    swallows_cancellation,
)
from wait_registry.daemon_threads import DaemonThreads
from wait_registry.handler import Discard, HandlerResult, PermanentError, Record

Handler = Callable[[Record], Awaitable[HandlerResult]]


class PoolBench:
    """A pool whose ended calls are collected; at most ``workers`` calls are handed over at once, as the engine does."""

    def __init__(self, handler: Any, workers: int = 1, stop_limit_s: float = 10.0) -> None:
        self._inbox = Inbox()
        self.fault, self.stats = self._inbox.fault, self._inbox.stats
        self.watchdog = DeadlineWatchdog(CLOCK, 30.0)
        attempts = attempts_of(handler, self.stats, max_in_flight=workers)
        self.ended: list[tuple[int, Result | None]] = []
        self.reports = 0
        self.pool = WorkerPool(attempts, self.watchdog, CLOCK, self._inbox, stop_limit_s)
        self._inbox.read_by(self._report)

    def _report(self) -> None:
        self.reports += 1
        if self.fault.error is None:
            event = self._inbox.take()
            assert isinstance(event, CallsEnded)
            self.ended += [(entry.offset, outcome) for entry, outcome in event.calls]

    async def run(self, *started: Entry) -> None:
        """Start calls and wait for their ends."""
        count = len(self.ended) + len(started)
        self.pool.start(started)
        await iterate_until(lambda: len(self.ended) == count or self.fault.error)


@asynccontextmanager
async def running(handler: Any, count: int = 1, **given: Any) -> AsyncIterator[tuple[PoolBench, list[Entry]]]:
    """Give a pool in which so many calls run."""
    bench, started = PoolBench(handler, count, **given), entries(*range(count))
    bench.pool.start(started)
    await iterate_until(lambda: bench.pool.running == count)
    yield bench, started
    await bench.pool.stop()


@pytest.mark.guarantee("P7.2")
async def test_n_handlers_run_at_once_and_start_in_order() -> None:
    now, most, started = 0, 0, []

    async def handler(record: Record) -> None:
        nonlocal now, most
        started.append(record.offset)
        now += 1
        most = max(most, now)
        for _ in range(record.offset % 7):
            await asyncio.sleep(0)
        now -= 1

    bench = LoopBench(handler, max_in_flight=5, registration="off")
    for first in range(0, 100, 10):
        bench.poll(*range(first, first + 10))
        await asyncio.sleep(0)
    await bench.run_until(bench.settled)
    assert most == 5
    assert started == list(range(100))
    await bench.pool.stop()


async def test_calls_that_do_not_wait_need_one_report() -> None:
    bench = PoolBench(done, 50)
    for rounds in (1, 2):
        await bench.run(*entries(*range(50)))
        assert bench.ended == rounds * [(offset, Done()) for offset in range(50)]
        assert len(bench.pool.workers) <= 1
        assert bench.reports == rounds
    await bench.pool.stop()


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_each_answer_is_an_outcome(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    error = PermanentError("no")

    def plain(record: Record) -> Any:
        if record.offset == 2:
            raise error
        return [None, Discard("old\n\x1b[2J"), None, True][record.offset]

    async def handler(record: Record) -> Any:
        return plain(record)

    bench = PoolBench(handler if kind == "async" else PlainFunctionHandler(plain, 1))
    with caplog.at_level("INFO", "processor.calls.worker_pool"):
        for entry in entries(0, 1, 2, 3):
            await bench.run(entry)
    assert caplog.messages == ["discarded: old \\x1b[2J"]
    outcomes = [outcome for _, outcome in bench.ended]
    assert outcomes[:3] == [Done(), Discarded("old\n\x1b[2J"), Failed(error)]
    assert isinstance(outcomes[3], Failed) and outcomes[3].ours
    assert sum(bench.stats.seconds["failed"].counts) == 2
    await bench.pool.stop()


@pytest.mark.guarantee("O1.3")
async def test_one_call_is_cancelled_and_its_worker_takes_the_next() -> None:
    calls: list[int] = []

    async def handler(record: Record) -> None:
        calls.append(record.offset)
        if record.offset < 2:
            await asyncio.sleep(3600)

    async with running(handler, 2) as (bench, (_, second)):
        bench.pool.cancel([second])
        await iterate_until(lambda: bench.ended)
        assert bench.ended == [(1, None)]
        await bench.run(entries(0, 1, 2)[2])
        assert bench.ended[1:] == [(2, Done())]
        assert (bench.pool.running, bench.fault.error) == (1, None)
    assert calls == [0, 1, 2]


async def test_a_call_is_cancelled_once_however_often_it_is_asked_for() -> None:
    async def handler(record: Record) -> None:
        if record.offset == 0:
            await asyncio.sleep(3600)
        raise ValueError("failed")

    async with running(handler, 1) as (bench, (first,)):
        bench.pool.cancel([first])
        bench.pool.cancel([first])
        await iterate_until(lambda: bench.ended)
        # Its worker isn't cancelled any more: what fails has an outcome.
        await bench.run(entries(0, 1)[1])
        assert [offset for offset, _ in bench.ended] == [0, 1]
        assert isinstance(bench.ended[1][1], Failed)


async def test_a_worker_that_other_code_cancels_ends_the_process() -> None:
    released = threading.Event()

    def blocks(record: Record) -> None:
        released.wait(30)

    async with running(PlainFunctionHandler(blocks, 1)) as (bench, _):
        busy = set(bench.pool.workers)
        bench.pool.start(entries(0, 1)[1:])
        await asyncio.sleep(0)
        (waiting,) = bench.pool.workers - busy
        waiting.cancel()
        await iterate_until(lambda: bench.fault.error)
        assert "other code cancelled a task" in str(bench.fault.error)
        released.set()
        await iterate_until(lambda: bench.reports)


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_what_a_call_leaves_behind_reaches_no_other_call(kind: str) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="none")
    left, seen, precision = list[asyncio.Task[Any]](), [], getcontext().prec

    def plain(record: Record) -> None:
        seen.append((tenant.get(), getcontext().prec))
        tenant.set("ACME")
        getcontext().prec = 4
        if len(seen) == 1:
            raise ConnectionResetError

    async def handler(record: Record) -> None:
        own = asyncio.current_task()
        assert own is not None
        for task in left:
            task.cancel()  # as a timer or a cancel scope of an earlier call does
        left.append(own)
        await asyncio.sleep(0)
        plain(record)

    bench = PoolBench(handler if kind == "async" else PlainFunctionHandler(plain, 1))
    for entry in entries(0, 1):
        await bench.run(entry)
    assert (bench.ended, bench.fault.error) == ([(0, Done()), (1, Done())], None)
    assert seen == 3 * [("none", precision)]
    await bench.pool.stop()


async def test_a_call_that_has_not_begun_is_cancelled_at_once() -> None:
    calls: list[int] = []

    async def handler(record: Record) -> None:
        calls.append(record.offset)

    bench, (first, second) = PoolBench(handler, 2), entries(0, 1)
    bench.pool.start([first, second])
    bench.pool.cancel([second])
    await iterate_until(lambda: len(bench.ended) == 2)
    assert sorted(bench.ended) == [(0, Done()), (1, None)]
    bench.pool.cancel([first])
    assert calls == [0], "cancelling a call that has ended changes nothing"
    await bench.pool.stop()


@pytest.mark.parametrize(
    ("handler", "stopped", "cancelled"),
    [(swallows_cancellation, Done(), Done()), (fails_when_cancelled, None, None), (endless, None, None)],
    ids=["answers", "fails", "ends"],
)
async def test_what_a_handler_makes_of_its_cancellation(
    handler: Handler, stopped: Result | None, cancelled: Result | None
) -> None:
    async with running(handler) as (bench, (one,)):
        bench.pool.cancel([one])
        await iterate_until(lambda: bench.ended)
        assert bench.ended == [(0, cancelled)]
        bench.pool.start(entries(7))
        await iterate_until(lambda: bench.pool.running)
    await asyncio.sleep(0)
    assert bench.ended[1:] == [(7, stopped)]
    assert bench.fault.error is None
    assert all(worker.done() for worker in bench.pool.workers)


async def test_a_call_stopped_during_its_clean_up_ends() -> None:
    cleaning, calls = asyncio.Event(), 0

    async def handler(record: Record) -> None:
        nonlocal calls
        calls += 1
        try:
            await asyncio.sleep(3600)
        finally:
            cleaning.set()
            await asyncio.sleep(3600)

    async with running(handler) as (bench, _):
        bench.watchdog.cancel_overdue(math.inf)
        await cleaning.wait()
    await asyncio.sleep(0)
    assert bench.ended == [(0, None)]
    assert calls == 1, "not tried again"


@pytest.mark.parametrize("worked_before", [False, True], ids=["no worker yet", "after a call"])
async def test_a_record_that_comes_after_stopping_starts_nothing(worked_before: bool) -> None:
    bench = PoolBench(done)
    if worked_before:
        await bench.run(*entries(0))
    before = len(bench.ended)
    await bench.pool.stop()
    bench.pool.start(entries(1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(bench.ended) == before
    assert all(worker.done() for worker in bench.pool.workers)


async def test_a_handler_that_ignores_cancellation_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    released = asyncio.Event()

    async def refuses(record: Record) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    with caplog.at_level(logging.WARNING):
        async with running(refuses, stop_limit_s=0.01) as (bench, _):
            pass
    assert "1 handlers ignored cancellation" in caplog.text
    released.set()
    await iterate_until(lambda: bench.ended)


async def test_a_thread_that_does_not_return_keeps_its_slot() -> None:
    released = threading.Event()

    def blocks_at_first(record: Record) -> None:
        if record.offset == 0:
            released.wait(30)

    handler = PlainFunctionHandler(blocks_at_first, 2)
    async with running(handler) as (bench, (one,)):
        assert bench.pool.blocked() == 0
        bench.pool.cancel([one])
        await iterate_until(lambda: bench.ended)
        assert (bench.ended, bench.pool.running, bench.pool.blocked()) == ([(0, None)], 0, 1)
        await bench.run(entries(0, 1)[1])
        assert bench.ended[1:] == [(1, Done())], "the other slot is free"
        released.set()
        await iterate_until(lambda: not bench.pool.blocked())


async def test_a_plain_function_that_returns_a_coroutine_ends_the_process() -> None:
    bench = PoolBench(PlainFunctionHandler(lambda record: done(record), 1))  # type: ignore[arg-type,return-value]
    await bench.run(*entries(0))
    assert bench.ended == []
    assert "returned an awaitable (coroutine)" in str(bench.fault.error)
    await bench.pool.stop()


def refuse_to_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_without_a_thread_no_record_gets_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Record] = []
    handler = PlainFunctionHandler(calls.append, 1)
    bench = PoolBench(handler)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_to_start)
        await bench.run(*entries(0))
        await iterate_until(lambda: bench.fault.error)
    assert (bench.ended, calls) == ([], [])
    assert isinstance(bench.fault.error, NoThreadError)
    assert "can't start new thread" in str(bench.fault.error)
    assert handler.slots is not None
    assert (handler.slots.locked(), handler.slots.blocked) == (False, 0)
    await bench.pool.stop()


def test_a_thread_that_did_not_start_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ran = DaemonThreads(1, "one"), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_to_start)
        with pytest.raises(RuntimeError):
            threads.submit(ran.set)
    threads.submit(ran.set)
    assert ran.wait(30)
    threads.close()
