"""Members that join and leave without pause cost no record, and every record gets its outcome (P1, P2)."""

from __future__ import annotations

from collections import deque

import pytest

from tests.faults.processor.observation import Observation
from tests.integration.processor.scenario import Counts, ScenarioFactory
from tests.support.waiting import wait_until

TURNS = 10


@pytest.mark.fault("F26")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_storm_of_rebalances_loses_nothing_and_leaves_nothing_open(
    protocol: str, faulty_scenario: ScenarioFactory
) -> None:
    handler = Counts(0.02)
    at = faulty_scenario(handler, 6, max_in_flight=3, group_protocol=protocol)
    with Observation(at.topics, at.settings) as seen:
        members = deque([at.changed("processor", instance="first").start().wait_joined()])
        for turn in range(TURNS):
            came = at.changed("processor", instance=f"{turn}").start()
            members.append(came)
            seen.publish_until(lambda came=came: came.stats.registered, "work of a new member")  # type: ignore[misc]
            if len(members) > 2:
                members.popleft().stop()
        wait_until(lambda: len(handler.calls) == len(seen.published), what="the calls of all records")
        for member in members:
            member.stop()

    found = seen.judge(handler.calls)
    assert all(story.resolved and set(story.outcomes) == {"done"} for story in found.values())
    instances = {wait.text("WAIT_INSTANCE") for story in found.values() for wait in story.waits}
    assert len(instances) == TURNS + 1, "each has worked"
