"""Strategy ``batch``: what a long batch has paused is resumed before the next one, whatever a rebalance brings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from processor.assigned_partition import AssignedPartition
from processor.strategies.batch import BatchStrategy
from tests.unit.processor.strategy_bench import StrategyBench
from wait_registry.handler import Record

Taken = list[tuple[AssignedPartition, Message]]


class _LongBatch:
    """A batch that is long from the beginning, and ends when the test says so; its consumer notes what it is told."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.strategy = BatchStrategy(StrategyBench(self._handle).context)
        self.told: list[str] = []
        consumption: Any = self.strategy._consumption
        consumption.pause = lambda: self.told.append("pause")
        consumption.resume = lambda: self.told.append("resume")
        consumption.take = lambda count: self.take(count)
        consumption.wait = self._wait

    def take(self, count: int) -> Taken:
        """Bring nothing, a poll while the batch runs."""
        self.may_end.set()
        return []

    async def run(self) -> None:
        """Work it off, and fetch the next."""
        message = Message(
            topic="input", partition=0, offset=0, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 1)
        )
        assert await self.strategy._work_off([(AssignedPartition("input", 0, 0), message)])
        assert await self.strategy._next() == []

    async def _handle(self, record: Record) -> None:
        await self.may_end.wait()

    async def _wait(self, timeout_s: float) -> Taken:
        return []


@pytest.fixture(autouse=True)
def _long_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.strategies.batch.POLL_AFTER_S", 0.0)


def on_loop(main: Any) -> None:
    asyncio.run(asyncio.wait_for(main(), 30))


def test_what_it_has_paused_is_resumed_before_the_next_records_are_fetched() -> None:
    async def main() -> None:
        batch = _LongBatch()
        await batch.run()
        assert batch.told == ["pause", "resume"]
        await batch.strategy._next()
        assert batch.told == ["pause", "resume"], "once"

    on_loop(main)


def test_partitions_that_stay_are_resumed_when_the_last_poll_of_the_batch_has_brought_new_ones() -> None:
    async def main() -> None:
        batch = _LongBatch()

        def poll(count: int) -> Taken:
            batch.may_end.set()
            batch.strategy.assigned([])
            return []

        batch.take = poll  # type: ignore[method-assign]
        await batch.run()
        assert batch.told == ["pause", "resume"]

    on_loop(main)


def test_a_partition_that_was_given_up_while_it_was_paused_is_resumed_when_it_comes_back() -> None:
    async def main() -> None:
        batch = _LongBatch()
        await batch.run()
        batch.told.clear()
        batch.strategy.assigned([])
        await batch.strategy._next()
        assert batch.told == ["resume"]

    on_loop(main)


def test_records_fetched_early_of_a_partition_that_a_poll_meanwhile_gives_up_are_forgotten() -> None:
    async def main() -> None:
        batch = _LongBatch()
        gone = AssignedPartition("input", 1, 0)
        early = Message(
            topic="input", partition=1, offset=0, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 1)
        )
        batch.strategy._early = [(gone, early)]

        def poll(count: int) -> Taken:
            batch.strategy.revoked([gone])
            batch.may_end.set()
            return []

        batch.take = poll  # type: ignore[method-assign]
        await batch.run()
        assert batch.strategy._early == []

    on_loop(main)
