"""A processor whose partitions are all gone shows it until the next assignment, and isn't worked off (P8)."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import TopicPartition

from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.settings.processor import AssignmentStrategy

GONE = [TopicPartition("input", 0)]
REASON = "no partitions assigned yet"


def _said_after(callback: str, assignment_strategy: AssignmentStrategy) -> list[str]:
    async def main() -> list[str]:
        bench = PipelineBench(assignment_strategy=assignment_strategy)
        bench.context.membership.assigned("own")
        assert REASON not in bench.pipeline.not_ready()
        getattr(bench.group_consumer, callback)(bench.group_consumer.consumer, GONE)
        assert bench.fault.error is None
        assert not bench.group_consumer.assigned
        return bench.pipeline.not_ready()

    return asyncio.run(main())


@pytest.mark.guarantee("P8.23")
@pytest.mark.parametrize("strategy", AssignmentStrategy)
def test_a_member_with_lost_partitions_is_not_ready(strategy: AssignmentStrategy) -> None:
    assert REASON in _said_after("on_lost", strategy)


def test_a_member_that_released_everything_is_not_ready() -> None:
    assert REASON in _said_after("on_revoke", AssignmentStrategy.RANGE)


def test_a_member_that_released_some_partitions_is_ready() -> None:
    assert REASON not in _said_after("on_revoke", AssignmentStrategy.COOPERATIVE_STICKY)
