"""Members that join and leave without pause cost no record, and every record gets its outcome (P1, P2)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.processor.observation import Observation, Place
from tests.integration.processor.running import Processors, RunningProcessor
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

TURNS = 10
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": {"processor.group_protocol": "classic"},
    "consumer": {"processor.group_protocol": "consumer"},
}


@pytest.mark.fault("F26")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_storm_of_rebalances_loses_nothing_and_leaves_nothing_open(
    protocol: str,
    faulty_settings: Callable[..., Settings],
    faulty_topics: Topics,
    processors: Processors,
) -> None:
    calls: Counter[Place] = Counter()

    async def takes_a_while(record: Record) -> None:
        calls[record.partition, record.offset] += 1
        await asyncio.sleep(0.02)

    settings = faulty_settings(
        {"processor.handler": processors.handler(takes_a_while), "processor.max_in_flight": 3, **PROTOCOLS[protocol]}, 6
    )

    def started(name: str) -> RunningProcessor:
        own = settings.processor.model_copy(update={"instance": name})
        return processors.start(settings.model_copy(update={"processor": own}))

    with Observation(faulty_topics, settings) as seen:
        members = deque([started("first").wait_joined()])
        for turn in range(TURNS):
            came = started(f"{turn}")
            members.append(came)
            seen.publish_until(lambda came=came: came.stats.registered, "work of a new member")  # type: ignore[misc]
            if len(members) > 2:
                members.popleft().stop()
        wait_until(lambda: len(calls) == len(seen.published), what="the calls of all records")
        for member in members:
            member.stop()

    told = seen.judge(calls)
    assert all(story.resolved and set(story.outcomes) == {"done"} for story in told.values())
    instances = {wait.text("WAIT_INSTANCE") for story in told.values() for wait in story.waits}
    assert len(instances) == TURNS + 1, "each has worked"
