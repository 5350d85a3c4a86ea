"""The lag of partitions that aren't fetched is fresh, and of delayed ones it is known how much is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from processor.intake.assigned_log import AssignedLog
from processor.intake.log_ends import AHEAD_MS, First, LogEnds, due_end
from processor.intake.subscription import subscription
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.root import Settings

FETCHED, PAUSED, RETRIES = ("input", 1), ("input", 2), ("input.group.retry.10s", 0)
NOW_MS = 1_000_000


async def test_the_broker_is_asked_for_what_no_fetch_returns() -> None:
    asked: list[object] = []
    bench = PipelineBench()
    consumer = bench.group_consumer
    consumer.paused.update([PAUSED, ("input", 3)])
    for place in (FETCHED, PAUSED, RETRIES):
        consumer.assigned[place] = AssignedLog(place, 4)

    def ends(places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        asked.append(sorted(places))
        return dict.fromkeys(places, 10)

    def firsts(times_ms: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, First]:
        asked.append(times_ms)
        return dict.fromkeys(times_ms, (6, NOW_MS))

    given = {"topics": ["input"], "group": "group", "retry": {"delays": ["10s"]}}
    topics = subscription(Settings.model_validate({"processor": given}), "instance", ())
    await LogEnds(consumer, topics, ends, firsts, lambda: NOW_MS).run_once()
    assert asked == [[PAUSED, RETRIES], {RETRIES: NOW_MS - 10_000 + 1}]
    assert [owner.lag for owner in consumer.assigned.values()] == [None, 6, 6]
    assert [owner.due_lag(owner.place == RETRIES) for owner in consumer.assigned.values()] == [None, 6, 2]
    await bench.pool.stop()


@pytest.mark.parametrize(
    ("first", "due"),
    [
        pytest.param((7, NOW_MS - 1), 7, id="some are due"),
        pytest.param((-1, -1), 10, id="all are due"),
        pytest.param((7, NOW_MS + AHEAD_MS + 1), 10, id="a timestamp in the future says nothing"),
    ],
)
def test_records_below_the_first_that_is_too_young_are_due(first: First, due: int) -> None:
    assert due_end(first, 10, NOW_MS) == due
