"""What a handler does decides about its record, and never about the loop."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from processor.calls.deadline import UNHEEDED_S, Call, DeadlineWatchdog
from processor.handlers.failures import asked_pause_s
from processor.handlers.open_handler import CURRENT_ATTEMPT
from processor.handlers.python import PlainFunctionHandler
from processor.health.stats import Stats
from processor.protocol.results import Discarded, Done, Failed, Result
from tests.unit.processor.parts import (
    CLOCK,
    RECORD,
    HaltedClock,
    attempts_of,
    endless,
    fails_when_cancelled,
    iterate_until,
    swallows_cancellation,
)
from wait_registry.errors import DataError
from wait_registry.handler import Discard, PermanentError, Record, TransientError

LAST = TransientError("3")


async def run(handler: Any, expires_in_s: float = 600.0, **settings: object) -> tuple[Result, Stats]:
    """Run all attempts at one record."""
    given: dict[str, Any] = {"handler_timeout_s": 30.0, "max_attempts": 3, "backoff_initial_s": 0.001, **settings}
    stats, watchdog = Stats(), DeadlineWatchdog(CLOCK, given["handler_timeout_s"])
    attempts = attempts_of(handler, stats, **given)
    task = asyncio.current_task()
    assert task is not None
    call = watchdog.watch(task)
    watchdog.start()
    try:
        if attempts.slots is not None:
            await attempts.slots.acquire()
        now_s = CLOCK.monotonic()
        call.start(RECORD, now_s, now_s + expires_in_s)
        return await attempts.run(RECORD, call, now_s), stats
    finally:
        assert call.at_s == math.inf
        assert not task.cancelling(), "a passed limit leaves no cancellation behind"
        watchdog.stop()


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


class Unprintable:
    def __str__(self) -> str:
        raise LookupError("no")


@pytest.mark.parametrize(
    ("answers", "result", "attempts"),
    [
        ([None], Done(), {"ok": 1}),
        ([Discard("old")], Discarded("old"), {"ok": 1}),
        ([Discard(5)], Discarded("5"), {"ok": 1}),  # type: ignore[arg-type]
        ([Discard(Unprintable())], Discarded("its reason can't be shown: LookupError"), {"ok": 1}),  # type: ignore[arg-type]
        ([OSError(), ConnectionResetError(), None], Done(), {"error": 2, "ok": 1}),
        ([TransientError("1"), TransientError("2"), LAST], Failed(LAST, retriable=True), {"error": 3}),
    ],
    ids=["done", "discarded", "a number", "no text", "tried again", "the last error remains"],
)
async def test_retriable_errors_are_retried(answers: list[object], result: Result, attempts: dict[str, int]) -> None:
    handler, calls = answering(*answers)
    found, stats = await run(handler)
    assert (found, stats.attempts) == (result, attempts)
    assert calls == [RECORD] * len(answers)


async def test_each_attempt_is_numbered_and_its_own_timeout_counts_as_one() -> None:
    numbers: list[int] = []

    async def handler(record: Record) -> None:
        numbers.append(CURRENT_ATTEMPT.get())
        if len(numbers) < 3:
            raise TimeoutError("the service's own deadline")

    result, stats = await run(handler)
    assert result == Done()
    assert numbers == [1, 2, 3]
    assert stats.attempts == {"timeout": 2, "ok": 1}


class Odd(OSError, PermanentError):
    """Nothing about it can be examined."""

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise LookupError

    @__cause__.setter
    def __cause__(self, given: Any) -> None:
        pass

    errno = __context__ = __suppress_context__ = __cause__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "error",
    [
        PermanentError("no"),
        DataError("no"),
        ValueError("no"),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        BaseException("odd"),
        GeneratorExit(),
        Odd(0, "odd"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_other_exception_fails_the_record_at_once(error: BaseException) -> None:
    handler, calls = answering(error)
    result: Result | None = None
    with suppress(LookupError):  # pytest can't show Odd either
        result, _ = await run(handler)
    assert isinstance(result, Failed)
    assert result.error is error
    assert len(calls) == 1


async def fails_in_a_task_group(record: Record) -> None:
    async def fails() -> None:
        raise ConnectionResetError("peer")

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())


async def cancels_itself(record: Record) -> None:
    own = asyncio.current_task()
    assert own is not None
    own.cancel()
    await asyncio.sleep(0)


async def returns_cancelled(record: Record) -> None:
    own = asyncio.current_task()
    assert own is not None
    own.cancel()


async def raises_cancelled(record: Record) -> None:
    await returns_cancelled(record)
    raise PermanentError("no")


@pytest.mark.parametrize(
    ("handler", "error", "attempts"),
    [
        (fails_in_a_task_group, ExceptionGroup, 3),
        (cancels_itself, asyncio.CancelledError, 1),
        (raises_cancelled, PermanentError, 1),
        (returns_cancelled, None, 1),
    ],
)
async def test_cancelled_tasks_give_an_outcome(handler: Any, error: type[BaseException] | None, attempts: int) -> None:
    result, stats = await run(handler)
    assert (type(result.error) if isinstance(result, Failed) else None) is error
    assert sum(stats.attempts.values()) == attempts
    with pytest.raises(TimeoutError):  # not CancelledError: nothing is left to the next record
        async with asyncio.timeout(0.001):
            await asyncio.sleep(30)


class Busy(TransientError):
    @property
    def retry_after_s(self) -> Any:  # type: ignore[override]
        raise LookupError

    @retry_after_s.setter
    def retry_after_s(self, given: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "pause_s"),
    [
        (TransientError(retry_after_s="5"), 5),  # type: ignore[arg-type]
        (TransientError(retry_after_s="soon"), 0),  # type: ignore[arg-type]
        (TransientError(retry_after_s=[5]), 0),  # type: ignore[arg-type]
        (TransientError(retry_after_s=10**400), 0),
        (Busy(), 0),
        (ExceptionGroup("both", [TransientError(retry_after_s=5), OSError()]), 5),
    ],
    ids=["text of a number", "other text", "list", "beyond float", "own class", "group"],
)
async def test_odd_pauses_are_ignored(error: Exception, pause_s: float, caplog: pytest.LogCaptureFixture) -> None:
    assert asked_pause_s(error) == pause_s
    assert ("is no number" in caplog.text) is (pause_s == 0)
    assert (await run(answering(error, None)[0], backoff_max_s=0.001))[0] == Done()


def nested(error: Exception) -> ExceptionGroup[Any]:
    group = ExceptionGroup("", [error])
    for _ in range(2_000):
        group = ExceptionGroup("", [group])
    return group


@pytest.mark.parametrize(
    ("members", "calls"),
    [([OSError(), TransientError()], 2), ([OSError(), ValueError()], 1), ([nested(OSError())], 2)],
    ids=["all", "one", "nested"],
)
async def test_a_group_is_tried_again_if_each_of_its_members_is(members: list[Exception], calls: int) -> None:
    handler, called = answering(ExceptionGroup("both", members), None)
    await run(handler)
    assert len(called) == calls


async def test_an_attempt_over_its_limit_is_cancelled_and_tried_again() -> None:
    ended: list[str] = []

    async def slow_at_first(record: Record) -> None:
        if not ended:
            try:
                await endless(record)
            finally:
                ended.append("cancelled")

    result, stats = await run(slow_at_first, handler_timeout_s=0.5)
    assert result == Done()
    assert ended == ["cancelled"]
    assert stats.attempts == {"timeout": 1, "ok": 1}


async def test_an_error_during_cancellation_counts_as_a_timeout() -> None:
    result, stats = await run(fails_when_cancelled, handler_timeout_s=0.05, max_attempts=1)
    assert isinstance(result, Failed)
    assert isinstance(result.error, TimeoutError)
    assert isinstance(result.error.__cause__, ValueError)
    assert stats.attempts == {"timeout": 1}


async def test_an_answer_in_spite_of_a_cancellation_counts() -> None:
    assert (await run(swallows_cancellation, handler_timeout_s=0.05))[0] == Done()


async def test_no_attempt_begins_without_time_left() -> None:
    handler, calls = answering(TransientError("1"), None)
    result, _ = await run(handler, expires_in_s=14.0, margin_s=5.0, handler_timeout_s=10.0)
    assert isinstance(result, Failed)
    assert len(calls) == 1


class BlocksAtFirst:
    """A plain handler whose first call is blocked until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.calls = 0

    def __call__(self, record: Record) -> Discard | None:
        self.calls += 1
        if self.calls > 1:
            return None
        self.released.wait(30)
        return Discard("late")


@pytest.mark.guarantee("P7.3")
async def test_a_plain_call_after_its_limit_keeps_its_slot() -> None:
    function = BlocksAtFirst()
    handler = PlainFunctionHandler(function, 2)
    assert (await run(handler, handler_timeout_s=0.5))[0] == Done()
    slots = handler.slots
    assert slots is not None
    assert (slots.locked(), slots.blocked) == (False, 1)
    function.released.set()
    await iterate_until(lambda: not slots.blocked)
    assert not slots.locked()
    assert function.calls == 2


async def test_the_next_attempt_of_a_blocked_plain_handler_waits_for_a_slot() -> None:
    function = BlocksAtFirst()
    handler = PlainFunctionHandler(function, 1)
    working = asyncio.ensure_future(run(handler, handler_timeout_s=0.5))
    slots = handler.slots
    assert slots is not None
    await iterate_until(lambda: slots.blocked)
    assert function.calls == 1
    function.released.set()
    assert (await working)[0] == Done()
    assert function.calls == 2


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), StopIteration()], ids=lambda e: type(e).__name__)
async def test_what_a_plain_handler_raises_fails_its_record(error: BaseException) -> None:
    def raising(record: Record) -> None:
        raise error

    result, _ = await run(PlainFunctionHandler(raising, 1))
    assert isinstance(result, Failed)
    assert isinstance(result.error, RuntimeError if isinstance(error, StopIteration) else type(error))


class Watched:
    """A watchdog with a limit of one second, on a clock that the test moves, and an attempt that takes longer."""

    def __init__(self) -> None:
        self.clock = HaltedClock()
        self.watchdog = DeadlineWatchdog(self.clock, 1.0)
        self.task = asyncio.ensure_future(asyncio.sleep(60))
        self.call = self.watchdog.watch(self.task)
        self.call.at_s = self.clock.now_s + 1.0
        self.watchdog.start()

    def look_after(self, seconds: float) -> bool:
        """Look again after so long and return whether the limit has passed."""
        self.clock.now_s += seconds
        self.watchdog.look()
        return self.call.passed

    async def end(self) -> None:
        self.watchdog.stop()
        await asyncio.wait([self.task])


async def test_a_pause_of_the_whole_loop_does_not_count_against_handlers() -> None:
    watched = Watched()
    assert not watched.look_after(5.0), "its answer may lie unread in the socket"
    assert watched.look_after(watched.watchdog.tick_s)
    await watched.end()


async def test_a_loop_that_is_late_every_time_still_ends_attempts() -> None:
    watched = Watched()
    assert [watched.look_after(10 * watched.watchdog.tick_s) for _ in range(6)][-1]
    await watched.end()


@pytest.mark.guarantee("P8.19")
async def test_an_attempt_that_ignores_cancellation_counts_as_blocked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "processor.calls.deadline")
    release = asyncio.Event()

    async def refuses(record: Record) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    clock = HaltedClock()
    watchdog = DeadlineWatchdog(clock, 1.0)
    attempts = attempts_of(refuses, clock=clock, handler_timeout_s=1.0)
    watched: list[Call] = []

    async def work() -> Result:
        task = asyncio.current_task()
        assert task is not None
        watched.append(watchdog.watch(task))
        watched[0].start(RECORD, clock.now_s)
        return await attempts.run(RECORD, watched[0], clock.now_s)

    working = asyncio.ensure_future(work())
    await iterate_until(lambda: watched and watched[0].at_s < math.inf)
    watchdog.start()
    for _ in range(3):  # the first check after a pause cancels nothing
        clock.now_s += 1.0
        watchdog.look()
    assert watched[0].passed
    await asyncio.sleep(0)
    assert (watchdog.blocked(), caplog.records) == (0, []), "it may clean up after itself"
    for _ in range(4):
        clock.now_s += UNHEEDED_S
        watchdog.look()
    assert watchdog.blocked() == 1
    [told] = caplog.records
    assert "must let asyncio.CancelledError through" in told.getMessage()
    named = (told.wait_id, told.topic, told.partition, told.offset)  # type: ignore[attr-defined]
    assert named == (RECORD.wait_id, RECORD.topic, RECORD.partition, RECORD.offset)
    release.set()
    await iterate_until(lambda: not watchdog.blocked())
    working.cancel()
    watchdog.stop()
    await asyncio.wait([working])
