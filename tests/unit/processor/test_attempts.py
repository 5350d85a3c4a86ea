"""What a handler does decides about its record, and never about the loop."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from processor.attempts import Attempts, Failed, InvalidAnswerError, Result
from processor.deadline import UNHEEDED_S, Deadline, DeadlineWatchdog
from processor.handlers.open_handler import OpenHandler
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import iterate_until
from wait_registry.clock import SystemClock
from wait_registry.handler import Discard, PermanentError, Record, TransientError
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
RECORD = Record("input", 0, 1, 2, b"key", b"value", (), 1, "the-id", "group", datetime(2030, 1, 1, tzinfo=UTC))


class Bench:
    """Attempts at one record on a running event loop."""

    def __init__(self, handler: OpenHandler, **values: object) -> None:
        settings = ProcessorSettings.model_validate(
            {"handler_timeout_s": 30.0, "max_attempts": 3, "backoff_initial_s": 0.001, **values}
        )
        limits = time_limits(settings)
        self.stats = Stats()
        self.watchdog = DeadlineWatchdog(CLOCK, settings.handler_timeout_s)
        decision = RetryDecision(settings, limits, lambda: 0.5)
        self.attempts = Attempts(handler, settings.handler_timeout_s, decision, CLOCK, self.stats)
        self.deadline: Deadline | None = None

    async def run(self, expires_in_s: float = 600.0) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self.deadline = self.watchdog.watch(task)
        self.watchdog.start()
        try:
            if self.attempts.slots is not None:
                await self.attempts.slots.take()
            return await self.attempts.run(RECORD, CLOCK.monotonic() + expires_in_s, self.deadline)
        finally:
            assert self.deadline.at_s == math.inf
            assert not task.cancelling(), "a passed limit leaves no cancellation behind"
            self.watchdog.stop()


def run(handler: Callable[[Record], Awaitable[Any]], **values: object) -> tuple[Result, Stats]:
    async def main() -> tuple[Result, Stats]:
        bench = Bench(AsynchronousHandler(handler), **values)
        return await bench.run(), bench.stats

    return asyncio.run(main())


def answering(*answers: object) -> tuple[Callable[[Record], Coroutine[Any, Any, Any]], list[Record]]:
    """Return a handler that gives or raises one answer a call, and the list of its calls."""
    calls: list[Record] = []

    async def handler(record: Record) -> object:
        calls.append(record)
        answer = answers[len(calls) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return handler, calls


def test_none_is_done_and_discard_is_discarded() -> None:
    handler, calls = answering(None)
    assert run(handler)[0] is None
    assert calls == [RECORD]
    assert run(answering(Discard("old"))[0])[0] == Discard("old")


def test_transient_errors_time_outs_and_os_errors_are_tried_again() -> None:
    handler, calls = answering(TransientError("busy"), ConnectionResetError(), None)
    result, stats = run(handler)
    assert result is None
    assert len(calls) == 3
    assert stats.attempts == {"error": 2, "ok": 1}


def test_after_the_last_try_the_last_error_remains() -> None:
    handler, calls = answering(TransientError("1"), TransientError("2"), TransientError("3"))
    result, _ = run(handler)
    assert isinstance(result, Failed)
    assert str(result.error) == "3"
    assert result.attempts == len(calls) == 3


@pytest.mark.parametrize(
    "error",
    [
        PermanentError("no"),
        ValueError("no"),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        BaseException("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_exception_fails_the_record_at_once(error: BaseException) -> None:
    handler, calls = answering(error)
    result, _ = run(handler)
    assert isinstance(result, Failed)
    assert result.error is error
    assert len(calls) == 1


def test_an_answer_of_a_wrong_type_fails_the_record() -> None:
    result, _ = run(answering(True)[0])
    assert isinstance(result, Failed)
    assert isinstance(result.error, InvalidAnswerError)
    assert (
        str(result.error) == "the handler returned bool; expected None (done) or wait_registry.handler.Discard(reason)"
    )


def test_an_attempt_over_its_limit_is_cancelled_and_tried_again() -> None:
    ended: list[str] = []

    async def slow_at_first(record: Record) -> None:
        if not ended:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("cancelled")

    result, stats = run(slow_at_first, handler_timeout_s=0.5)
    assert result is None
    assert ended == ["cancelled"]
    assert stats.attempts == {"timeout": 1, "ok": 1}


def test_an_error_during_cancellation_counts_as_a_timeout() -> None:
    async def turns_it_into_something_else(record: Record) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("while cleaning up") from None

    result, stats = run(turns_it_into_something_else, handler_timeout_s=0.05, max_attempts=1)
    assert isinstance(result, Failed)
    assert isinstance(result.error, TimeoutError)
    assert isinstance(result.error.__cause__, ValueError)
    assert stats.attempts == {"timeout": 1}


def test_an_answer_in_spite_of_a_cancellation_counts() -> None:
    async def stubborn(record: Record) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    assert run(stubborn, handler_timeout_s=0.05)[0] is None


def test_no_attempt_begins_without_time_left() -> None:
    handler, calls = answering(TransientError("1"), None)

    async def main() -> Result:
        return await Bench(AsynchronousHandler(handler), margin_s=5.0, handler_timeout_s=10.0).run(expires_in_s=14.0)

    result = asyncio.run(main())
    assert isinstance(result, Failed)
    assert len(calls) == 1


async def test_the_cancellation_of_a_worker_is_no_outcome() -> None:
    started = asyncio.Event()

    async def endless(record: Record) -> None:
        started.set()
        await asyncio.sleep(60)

    bench = Bench(AsynchronousHandler(endless))
    worker = asyncio.ensure_future(bench.attempts.run(RECORD, math.inf, Deadline(asyncio.current_task())))  # type: ignore[arg-type]
    await started.wait()
    worker.cancel()
    await asyncio.wait([worker])
    assert worker.cancelled()


@pytest.mark.guarantee("P7.3")
async def test_a_plain_call_after_its_limit_keeps_its_slot() -> None:
    import threading

    release, calls = threading.Event(), []

    def blocks_at_first(record: Record) -> Discard | None:
        calls.append(record)
        if len(calls) == 1:
            release.wait(30)
            return Discard("late")
        return None

    handler = PlainFunctionHandler(blocks_at_first, 2)
    bench = Bench(handler, handler_timeout_s=0.5)
    assert await bench.run() is None
    slots = handler.slots
    assert slots is not None
    assert (slots.free, slots.blocked) == (1, 1)
    release.set()
    await iterate_until(lambda: not slots.blocked)
    assert slots.free == 2
    assert len(calls) == 2


async def test_the_next_attempt_of_a_blocked_plain_handler_waits_for_a_slot() -> None:
    import threading

    release, calls = threading.Event(), []

    def blocks_at_first(record: Record) -> None:
        calls.append(record)
        if len(calls) == 1:
            release.wait(30)

    handler = PlainFunctionHandler(blocks_at_first, 1)
    bench = Bench(handler, handler_timeout_s=0.5)
    working = asyncio.ensure_future(bench.run())
    slots = handler.slots
    assert slots is not None
    await iterate_until(lambda: slots.blocked)
    assert len(calls) == 1
    release.set()
    assert await working is None
    assert len(calls) == 2


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), StopIteration()], ids=lambda e: type(e).__name__)
def test_what_a_plain_handler_raises_fails_its_record(error: BaseException) -> None:
    def raising(record: Record) -> None:
        raise error

    async def main() -> Result:
        return await Bench(PlainFunctionHandler(raising, 1)).run()

    result = asyncio.run(main())
    assert isinstance(result, Failed)
    assert isinstance(result.error, RuntimeError if isinstance(error, StopIteration) else type(error))


class Steps:
    """A clock that a test moves."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return 0


async def test_a_pause_of_the_whole_loop_does_not_count_against_handlers() -> None:
    steps = Steps()
    watchdog = DeadlineWatchdog(steps, 1.0)
    task = asyncio.ensure_future(asyncio.sleep(60))
    deadline = watchdog.watch(task)
    deadline.at_s = 1.0
    watchdog.start()
    steps.now_s = 5.0
    watchdog.look()
    assert not deadline.passed, "its answer may lie unread in the socket"
    steps.now_s += watchdog.tick_s
    watchdog.look()
    assert deadline.passed
    watchdog.stop()
    await asyncio.wait([task])


async def test_a_loop_that_is_late_every_time_still_ends_attempts() -> None:
    steps = Steps()
    watchdog = DeadlineWatchdog(steps, 1.0)
    task = asyncio.ensure_future(asyncio.sleep(60))
    deadline = watchdog.watch(task)
    deadline.at_s = 1.0
    watchdog.start()
    for _ in range(6):
        steps.now_s += 10 * watchdog.tick_s
        watchdog.look()
    assert deadline.passed
    watchdog.stop()
    await asyncio.wait([task])


@pytest.mark.guarantee("P8.19")
def test_an_attempt_that_ignores_cancellation_counts_as_blocked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = asyncio.Event()

    async def refuses(record: Record) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    async def main() -> None:
        steps = Steps()
        watchdog = DeadlineWatchdog(steps, 1.0)
        settings = ProcessorSettings()
        decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
        attempts = Attempts(AsynchronousHandler(refuses), 1.0, decision, steps, Stats())
        watched: list[Deadline] = []

        async def work() -> Result:
            task = asyncio.current_task()
            assert task is not None
            watched.append(watchdog.watch(task))
            return await attempts.run(RECORD, math.inf, watched[0])

        working = asyncio.ensure_future(work())
        await iterate_until(lambda: watched and watched[0].at_s < math.inf)
        watchdog.start()
        for _ in range(3):  # the first check after a pause cancels nothing
            steps.now_s += 1.0
            watchdog.look()
        assert watched[0].passed
        await asyncio.sleep(0)
        assert (watchdog.blocked(), caplog.records) == (0, []), "it may clean up after itself"
        for _ in range(4):
            steps.now_s += UNHEEDED_S
            watchdog.look()
        assert watchdog.blocked() == 1
        [told] = caplog.records
        assert "must let asyncio.CancelledError through" in told.getMessage()
        assert (told.wait_id, told.topic, told.partition, told.offset) == (  # type: ignore[attr-defined]
            RECORD.wait_id,
            RECORD.topic,
            RECORD.partition,
            RECORD.offset,
        )
        release.set()
        await iterate_until(lambda: not watchdog.blocked())
        working.cancel()
        watchdog.stop()
        await asyncio.wait([working])

    caplog.set_level(logging.WARNING, "processor.deadline")
    asyncio.run(asyncio.wait_for(main(), 30))
