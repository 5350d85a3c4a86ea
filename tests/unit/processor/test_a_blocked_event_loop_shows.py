"""An async handler that blocks stops all the work of its process, so the process must say that it doesn't work."""

from __future__ import annotations

import asyncio
import threading

from processor.deadline import Watchdog
from processor.readiness import STANDSTILL_S, not_ready_reasons
from tests.support.waiting import wait_until
from wait_registry.clock import SystemClock


def test_the_standstill_grows_while_a_handler_blocks_and_ends_with_it() -> None:
    watchdog, release, ended = Watchdog(SystemClock(), 0.1), threading.Event(), threading.Event()

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
        wait_until(lambda: watchdog.late_s() > 0.5, 30, "the standstill")
        release.set()
        wait_until(lambda: watchdog.late_s() < 0.5, 30, "its end")
    finally:
        release.set()
        ended.set()
        loop.join()
    assert watchdog.late_s() == 0, "it is over"


def test_a_process_whose_loop_stands_still_is_not_ready_and_says_why() -> None:
    [reason] = not_ready_reasons(False, True, None, STANDSTILL_S + 5)
    assert "stood still for 20 s" in reason
    assert not_ready_reasons(False, True, None, STANDSTILL_S - 5) == [], "a flush within a rebalance is no standstill"
