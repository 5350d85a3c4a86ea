"""An async handler that blocks stops all the work of its process, so the process must say that it doesn't work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from processor.dispatch.deadline import DeadlineWatchdog
from processor.service.stall_watchdog import WARN_AFTER_S, StallWatchdog
from tests.support.waiting import wait_until
from tests.unit.processor.parts import PLACE
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.clock import SystemClock
from wait_registry.errors import PermanentError

UNANSWERED = {"linger.ms": 600_000, "message.timeout.ms": 0}


def test_the_blocked_time_grows_while_a_handler_blocks() -> None:
    watchdog, release, ended = DeadlineWatchdog(SystemClock(), 0.1), threading.Event(), threading.Event()

    async def main() -> None:
        watchdog.start()
        await asyncio.sleep(0)
        release.wait(60)
        while not ended.is_set():  # noqa: ASYNC110 - the loop turns
            await asyncio.sleep(0)
        watchdog.stop()

    assert watchdog.late_s() == 0, "it hasn't begun"
    loop = threading.Thread(target=lambda: asyncio.run(main()))
    loop.start()
    try:
        wait_until(lambda: watchdog.late_s() > 0.5, 30, "the stall")
        release.set()
        wait_until(lambda: watchdog.late_s() < 0.5, 30, "its end")
    finally:
        release.set()
        ended.set()
        loop.join()
    assert watchdog.late_s() == 0, "it is over"


def test_each_stall_is_logged_once_with_the_blocking_line(caplog: pytest.LogCaptureFixture) -> None:
    late_s = [0.0]
    watch = StallWatchdog(lambda: late_s[0])
    begun, release = threading.Event(), threading.Event()

    def blocks() -> None:
        watch.start()
        begun.set()
        release.wait(60)

    loop = threading.Thread(target=blocks)
    loop.start()
    try:
        assert begun.wait(30)
        watch.stop()
        looks = [WARN_AFTER_S - 1, WARN_AFTER_S + 1, WARN_AFTER_S + 2, 0.0, WARN_AFTER_S]  # the last is another stall
        assert [watch.run_once() for late_s[0] in looks] == [False, True, False, False, True]
    finally:
        release.set()
        loop.join()
    first = caplog.records[0].getMessage()
    assert "blocked for 6 s in wait (threading.py" in first
    assert "must never block" in first


def test_a_process_that_stood_still_names_no_handler(caplog: pytest.LogCaptureFixture) -> None:
    watch = StallWatchdog(lambda: 17.0)
    assert watch.run_once(paused_s=16.0)
    assert "this process stood still for 16 s" in caplog.text
    assert "handler" not in caplog.text


async def test_a_rebalance_does_not_block_the_loop() -> None:
    bench = PipelineBench(flush_timeout_s=60, producer=UNANSWERED)
    bench.poll(0)
    waiting = asyncio.ensure_future(bench.shell.revoked([PLACE]))
    turns = [await asyncio.sleep(0) for _ in range(100)]
    assert len(turns) == 100 and not waiting.done()
    bench.fault.report(PermanentError("enough"))
    assert (await waiting).offsets == {}
