"""The downstream serves a number of calls at once, in their order, whatever becomes of those that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wait_registry.demo.capacity import Capacity


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


def test_without_a_capacity_all_calls_are_served() -> None:
    async def story(calls: Calls) -> None:
        assert await calls.settle() == "abcd"

    run(story, most=0)
