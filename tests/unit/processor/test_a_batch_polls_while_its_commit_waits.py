"""Strategy ``batch``: through an outage its consumer is polled, for what are no records, until a commit is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from processor.assigned_partition import AssignedPartition
from processor.strategies.batch import BatchStrategy
from tests.unit.processor.strategy_bench import StrategyBench
from wait_registry.handler import Record

OUTAGE = [KafkaError._TIMED_OUT, KafkaError._WAIT_COORD, KafkaError._TRANSPORT]


async def takes(record: Record) -> None:
    """Accept everything."""


def test_it_is_polled_after_each_commit_that_fails_and_fetches_again_after_the_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processor.strategies.batch.RETRY_COMMIT_S", 0.01)
    told: list[str] = []
    codes = list(OUTAGE)

    def commit_now(targets: dict[AssignedPartition, int]) -> None:
        told.append("commit")
        if codes:
            raise KafkaException(KafkaError(codes.pop(0)))

    def take(count: int) -> list[tuple[AssignedPartition, Message]]:
        told.append("poll")
        return []

    async def wait(timeout_s: float) -> list[tuple[AssignedPartition, Message]]:
        return []

    async def main() -> None:
        strategy = BatchStrategy(StrategyBench(takes).context)
        consumption: Any = strategy._consumption
        consumption.pause = lambda: told.append("pause")
        consumption.resume = lambda: told.append("resume")
        consumption.commit_now, consumption.take, consumption.wait = commit_now, take, wait
        owner = AssignedPartition("input", 0, 0)
        consumption.assigned[("input", 0)] = owner
        strategy._finished[owner] = 7
        await strategy._commit()
        assert owner.confirmed == 7
        assert await strategy._next() == []

    asyncio.run(asyncio.wait_for(main(), 30))
    assert told[:9] == ["commit", "pause", "poll", "commit", "poll", "commit", "poll", "commit", "resume"]
