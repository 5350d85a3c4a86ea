"""Stopping ends: no record is started after it, and no handler can delay it indefinitely."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Failed, Result
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.handlers.python import AsynchronousHandler
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import entry, iterate_until
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
OWNER = AssignedPartition("input", 0)


class Bench:
    """One worker whose results are collected."""

    def __init__(self, handler: Callable[[Record], Awaitable[Any]], stop_limit_s: float = 10.0) -> None:
        settings = ProcessorSettings(max_in_flight=1)
        decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
        attempts = Attempts(AsynchronousHandler(handler), settings.handler_timeout_s, decision, CLOCK, Stats())
        self.fault = Fault()
        self.settled: list[tuple[int, Result]] = []
        self.watchdog = DeadlineWatchdog(CLOCK, settings.handler_timeout_s)
        self.dispatcher = Dispatcher(
            1, "group", attempts, self.watchdog, CLOCK, self.fault, self._settle, lambda renewed: None, stop_limit_s
        )

    def _settle(self, one: Entry, result: Result, elapsed_s: float) -> None:
        self.settled.append((one.offset, result))

    @property
    def workers(self) -> list[asyncio.Task[None]]:
        return self.dispatcher.workers


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

    bench = Bench(handler)
    one = entry(OWNER, 0)
    bench.dispatcher.add([one])
    await iterate_until(lambda: calls)
    bench.watchdog.cancel_overdue(math.inf)
    await cleaning.wait()
    await bench.dispatcher.stop()
    assert all(worker.cancelled() for worker in bench.workers)
    assert calls == [0], "not tried again"
    assert (bench.settled, one.state) == ([], EntryState.STARTED)


async def test_an_error_that_stopping_made_the_handler_raise_is_no_outcome() -> None:
    async def handler(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise ValueError("while cleaning up") from None

    bench = Bench(handler)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    await bench.dispatcher.stop()
    assert not [result for _, result in bench.settled if isinstance(result, Failed)]
    assert bench.settled == []
    assert bench.fault.error is None


async def test_an_answer_while_stopping_is_settled() -> None:
    async def stubborn(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    bench = Bench(stubborn)
    bench.dispatcher.add([entry(OWNER, 0), entry(OWNER, 1)])
    await iterate_until(lambda: bench.dispatcher.running)
    await bench.dispatcher.stop()
    assert bench.settled == [(0, None)]
    assert all(worker.done() for worker in bench.workers)
    assert (bench.dispatcher.waiting, bench.dispatcher.running) == (1, 0)


@pytest.mark.parametrize("worked_before", [False, True], ids=["no worker yet", "a worker that rested"])
async def test_a_record_that_comes_after_stopping_starts_nothing(worked_before: bool) -> None:
    async def handler(record: Record) -> None:
        pass

    bench = Bench(handler)
    if worked_before:
        bench.dispatcher.add([entry(OWNER, 0)])
        await iterate_until(lambda: bench.settled)
    before = len(bench.settled)
    await bench.dispatcher.stop()
    bench.dispatcher.add_first(entry(OWNER, 1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(bench.settled) == before
    assert all(worker.done() for worker in bench.workers)
    assert bench.dispatcher.waiting == 1


async def test_a_handler_that_ignores_cancellation_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    released = asyncio.Event()

    async def refuses(record: Record) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    bench = Bench(refuses, stop_limit_s=0.01)
    bench.dispatcher.add([entry(OWNER, 0)])
    await iterate_until(lambda: bench.dispatcher.running)
    with caplog.at_level(logging.WARNING):
        await bench.dispatcher.stop()
    assert "1 handlers" in caplog.text
    released.set()
    await iterate_until(lambda: bench.settled)
