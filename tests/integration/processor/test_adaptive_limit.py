"""With `auto`, the calls in flight follow the capacity of the service that the handler calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.telemetry.metrics import PROCESSOR_IN_FLIGHT_LIMIT
from waitreg.downstream.service import Downstream

# Long enough that a busy machine is no limit of its own.
CALL_S = 0.4
DEADLINE_S = 300.0
LARGE, SMALL = 30, 5


class RunningDownstream:
    """The downstream in a thread of its own."""

    def __init__(self) -> None:
        self.downstream = Downstream(port=0, mixture=f"{1000 * CALL_S:g}ms", capacity=LARGE)
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = RunningThread(lambda: self._loop.run_until_complete(self._serve()))
        assert self._started.wait(60)

    async def _serve(self) -> None:
        await self.downstream.start()
        self._started.set()
        await self._ended.wait()
        await self.downstream.stop()

    def change(self, capacity: int) -> None:
        """Serve this number of calls at once."""
        body = b'{"capacity": %d}' % capacity
        with urlopen(f"{self.downstream.address}mixture", body, 60) as answer:
            assert answer.status == 200

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        assert self._thread.wait_ended() is None
        self._loop.close()


@pytest.fixture
def downstream() -> Iterator[RunningDownstream]:
    running = RunningDownstream()
    yield running
    running.stop()


def test_the_limit_follows_a_service(processor_scenario: ScenarioFactory, downstream: RunningDownstream) -> None:
    at = processor_scenario(
        downstream.downstream.address, 1, registration="off", max_in_flight="auto", max_in_flight_min=2
    )
    at.produce([b"value"] * 100_000)
    running = at.start()
    for capacity in (LARGE, SMALL, LARGE):
        downstream.change(capacity)
        began_s = time.monotonic()
        found = wait_until(
            lambda capacity=capacity: in_balance(running, capacity), DEADLINE_S, f"a limit near {capacity}"
        )
        before, since_s = downstream.downstream.stats()["count"], time.monotonic()
        wait_until(lambda before=before: downstream.downstream.stats()["count"] >= before + 100, what="100 calls")
        share = 100 / (time.monotonic() - since_s) * CALL_S / capacity
        print(f"capacity {capacity}: limit {found:g} after {since_s - began_s:.1f} s, share of the best {share:.0%}")
    running.stop()


def in_balance(running: RunningProcessor, capacity: int) -> float | None:
    """Return the limit if it is near the capacity."""
    limit = running.values(PROCESSOR_IN_FLIGHT_LIMIT)
    return limit[0] if limit and 0.8 * capacity <= limit[0] <= 2.5 * capacity else None
