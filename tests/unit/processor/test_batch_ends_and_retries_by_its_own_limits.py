"""Strategy ``batch``: a drain ends although a handler doesn't, and retries aren't limited by a time to live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from processor.assigned_partition import AssignedPartition
from processor.strategies.batch import BatchStrategy, poll_after_s
from tests.unit.processor.strategy_bench import StrategyBench
from wait_registry.handler import Record, TransientError


def _bench(handler: Callable[[Record], Awaitable[None]], **settings: object) -> tuple[StrategyBench, BatchStrategy]:
    bench = StrategyBench(handler, **settings)  # type: ignore[arg-type]
    return bench, BatchStrategy(bench.context)


def _work_off(strategy: BatchStrategy) -> Coroutine[Any, Any, bool]:
    message = Message(topic="input", partition=0, offset=0, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 1))
    return strategy._work_off([(AssignedPartition("input", 0, 0), message)])


def test_a_drain_over_its_limit_leaves_a_handler_behind_that_swallows_its_cancellation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("processor.strategies.batch.STOP_LIMIT_S", 0.05)
    swallowed: list[asyncio.CancelledError] = []

    async def main() -> None:
        over = asyncio.Event()

        async def refuses(record: Record) -> None:
            while not over.is_set():
                try:
                    await over.wait()
                except asyncio.CancelledError as cancelled:
                    swallowed.append(cancelled)

        bench, strategy = _bench(refuses, drain_timeout_s=0.01)
        bench.stop.set()
        work = asyncio.create_task(_work_off(strategy))
        # What can't be cancelled isn't waited for by cancelling it: no wait_for.
        ended, _ = await asyncio.wait([work], timeout=10)
        over.set()
        assert ended, "it waits for the handler"
        assert not work.result(), "nothing of it is committed"

    asyncio.run(main())
    assert swallowed
    assert "don't end although they were cancelled: left behind" in caplog.text


def test_a_record_is_retried_however_long_its_handler_may_take() -> None:
    async def main() -> None:
        tries: list[Record] = []

        async def fails_once(record: Record) -> None:
            tries.append(record)
            if len(tries) == 1:
                raise TransientError("not now")

        bench, strategy = _bench(
            fails_once, strategy="batch", ttl_s=600, handler_timeout_s=595, max_attempts=3, backoff_initial_s=0.01
        )
        assert await asyncio.wait_for(_work_off(strategy), 30)
        assert len(tries) == 2
        assert bench.stats.settled["done"] == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("librdkafka", "after_s"),
    [({}, 30.0), ({"max.poll.interval.ms": 600_000}, 30.0), ({"max.poll.interval.ms": "9000"}, 3.0)],
)
def test_a_long_batch_polls_in_time_whatever_the_group_allows(librdkafka: dict[str, Any], after_s: float) -> None:
    assert poll_after_s(librdkafka) == after_s
