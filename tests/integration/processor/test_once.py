"""``--once`` ends when what stood there is worked off, or held by a member that is certainly alive (KIP-848)."""

from __future__ import annotations

from contextlib import closing

import pytest

from processor.intake import stop_at_ends as once
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import Gate, ScenarioFactory, scenarios_on
from tests.support.kafka_io import group_member
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.waiting import holds, wait_until
from waitreg.local.stack import EmbeddedStack

# A dead member's partitions are taken back after twelve seconds, when another has long joined.
QUICK_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "12000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
}


@pytest.mark.guarantee("P4.18")
def test_once_does_not_end_while_records_are_unfinished(processor_scenario: ScenarioFactory) -> None:
    gate = Gate()
    at = processor_scenario(gate, 1, max_in_flight=2)
    at.produce([b"value"] * 6)
    running = at.start(once=True)
    wait_until(lambda: running.stats.registered == 6 and len(gate.calls) == 2, what="records that wait for a slot")
    holds(lambda: "draining" not in running.health.reasons, 1.0, "no drain with unfinished records")
    gate.opened.set()
    running.join()
    at.resolved_stories(6)


def test_it_waits_for_the_partitions_of_a_member_that_has_died(
    names: Names, services: Services, processors: Processors
) -> None:
    with EmbeddedStack(broker_properties=QUICK_SESSIONS, postgres_settings={"fsync": "off"}) as stack:
        handler = "tests.integration.processor.scenario:accepts"
        make = scenarios_on(stack, names, processors)
        at = make(handler, 1, group_protocol="consumer", commit_interval_s=0.1)
        dead = services.start("processor", at.settings).wait_ready()
        at.produce([b"first"])
        wait_until(lambda: at.committed() == [1], what="the commit of the first record")
        dead.kill()
        at.produce([b"value"] * 5)
        assert at.run_once().settled == {"done": 5}
        assert at.committed() == [6], "all that stood there, although a dead one had it"


def test_it_says_what_it_leaves_to_a_member_that_is_alive(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(partitions=1, group_protocol="consumer")
    at.produce([b"value"] * 3)
    monkeypatch.setattr(once, "ALIVE_AFTER_S", 2.0)
    alive = group_member(at.topics.bootstrap, at.group, [at.topic])
    with closing(alive):
        wait_until(lambda: alive.poll(0.1) is None and alive.assignment(), what="the other one's partition")
        running = at.run_once()
    assert running.settled == {}
    assert f"not processed here, but by live members of the group: {at.topic}[0] by " in caplog.text
