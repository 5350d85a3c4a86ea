"""The downstream serves a number of calls at once, and what its times say of rates and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waitreg.demo.comparison import limit_per_s, steady_rate_per_s
from waitreg.demo.plan import SLOWEST_S, DemoPlan
from waitreg.downstream.calls import ABORTED, Call
from waitreg.downstream.capacity import Capacity


class Calls:
    """Calls by name, each served until it is released."""

    def __init__(self, most: int, names: str) -> None:
        self.capacity = Capacity()
        self.capacity.change(most)
        self.served = ""
        self.released = {name: asyncio.Event() for name in names}
        self.tasks = {name: asyncio.create_task(self._call(name)) for name in names}

    async def _call(self, name: str) -> None:
        async with self.capacity:
            self.served += name
            await self.released[name].wait()

    async def settle(self) -> str:
        """Let every task continue as far as it can; return the calls that have been served so far."""
        for _ in range(10):
            await asyncio.sleep(0)
        return self.served

    async def release(self, name: str) -> str:
        self.released[name].set()
        return await self.settle()


def run(story: Callable[[Calls], object], most: int = 1, names: str = "abcd") -> None:
    async def played() -> None:
        calls = Calls(most, names)
        await story(calls)  # type: ignore[misc]
        for task in calls.tasks.values():
            task.cancel()

    asyncio.run(played())


def test_calls_beyond_the_capacity_wait_in_their_order() -> None:
    async def story(calls: Calls) -> None:
        assert await calls.settle() == "ab"
        assert await calls.release("b") == "abc"
        assert await calls.release("a") == "abcd"

    run(story, most=2)


def test_a_call_whose_caller_leaves_takes_no_turn() -> None:
    async def story(calls: Calls) -> None:
        await calls.settle()
        calls.tasks["b"].cancel()
        assert await calls.settle() == "a"
        # It leaves at the moment of its turn.
        calls.released["a"].set()
        await asyncio.sleep(0)
        calls.tasks["c"].cancel()
        assert await calls.settle() in ("ad", "acd")

    run(story)


def test_a_higher_capacity_counts_at_once_and_a_lower_one_when_calls_end() -> None:
    async def story(calls: Calls) -> None:
        assert await calls.settle() == "a"
        calls.capacity.change(3)
        assert await calls.settle() == "abc"
        calls.capacity.change(1)
        assert await calls.release("a") == "abc"
        assert await calls.release("b") == "abc"
        assert await calls.release("c") == "abcd"

    run(story)


CALL = Call(1, 0, 0, 0.0, 0.0, None, None, None, None, None, 200, "")


def finished_at(*times: float) -> list[Call]:
    return [replace(CALL, finished_s=time) for time in times]


@given(st.integers(20, 500), st.floats(0.1, 1000))
def test_completions_at_an_even_pace_have_that_rate(count: int, per_s: float) -> None:
    calls = finished_at(*(number / per_s for number in range(count)))
    assert steady_rate_per_s(calls) == pytest.approx(per_s)


def test_a_slow_start_and_a_slow_end_do_not_count() -> None:
    steady = [100 + number / 10 for number in range(81)]
    assert steady_rate_per_s(finished_at(*range(10), *steady, *range(200, 209))) == pytest.approx(10)


def test_calls_that_failed_or_were_aborted_are_no_completions() -> None:
    calls = finished_at(*range(100))
    failed = [replace(CALL, finished_s=50.5, status=status) for status in (503, ABORTED)] * 50
    assert steady_rate_per_s([*calls, *failed]) == steady_rate_per_s(calls)


@pytest.mark.parametrize("max_in_flight", [10, 50])
def test_a_batch_that_runs_ideally_measures_its_limit(max_in_flight: int) -> None:
    """Both ends of the measured span lie at the same place within a batch, so the bursts don't show."""
    records = DemoPlan().records("batch", max_in_flight)
    times = [
        batch * SLOWEST_S + (SLOWEST_S if number % 10 == 9 else 0.2)
        for batch in range(records // max_in_flight)
        for number in range(max_in_flight)
    ]
    assert steady_rate_per_s(finished_at(*times)) == pytest.approx(limit_per_s("batch", max_in_flight, SLOWEST_S, 0.28))


def test_the_limits_are_the_slowest_call_and_littles_law() -> None:
    assert limit_per_s("batch", 50, 1.0, 0.28) == 50
    assert limit_per_s("deferred", 50, 1.0, 0.28) == pytest.approx(178.57, abs=0.01)
