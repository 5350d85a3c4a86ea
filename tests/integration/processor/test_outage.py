"""A broker outage is no failure: the processor waits, reports it, and continues; nothing is lost (P1, P8)."""

from __future__ import annotations

import pytest

from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import Gate, ScenarioFactory, accepts, numbers, scenarios_on
from tests.support.naming import Names
from tests.support.stack import OwnStack
from tests.support.waiting import wait_until


@pytest.fixture
def breakable_scenario(own_stack: OwnStack, names: Names, processors: Processors) -> ScenarioFactory:
    """Make scenarios on a broker that this test may stop."""
    return scenarios_on(own_stack, names, processors)


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F49")
def test_a_broker_that_restarts_loses_nothing(own_stack: OwnStack, breakable_scenario: ScenarioFactory) -> None:
    handler = Gate(free=100)
    at = breakable_scenario(handler, max_in_flight=5, ttl_s=3600, commit_interval_s=0.1)
    at.produce(numbers(1500))
    running = at.start()
    wait_until(lambda: running.done > 50, what="the first records")
    own_stack.broker.stop()
    assert running.done < 1500, "it was stopped in mid-work"
    handler.opened.set()
    wait_until(lambda: "the broker can't be reached" in running.health.reasons, what="not being ready")
    own_stack.broker.start()
    wait_until(lambda: running.done >= 1500, 120, "all records")
    wait_until(lambda: running.health.ok, what="being ready again")
    running.stop()
    at.resolved_stories(1500)


@pytest.mark.fault("F50")
def test_while_a_broker_is_frozen_nothing_is_ready(own_stack: OwnStack, breakable_scenario: ScenarioFactory) -> None:
    handler = Gate(free=100)
    at = breakable_scenario(handler, max_in_flight=5)
    running = at.start()
    at.produce(numbers(1500))
    wait_until(lambda: running.done > 50, what="the first records")
    own_stack.broker.pause()
    try:
        handler.opened.set()
        # Its connections stay open: nothing but the missing acknowledgments shows it.
        wait_until(lambda: any("unacknowledged for" in reason for reason in running.health.reasons), what="not ready")
    finally:
        own_stack.broker.resume()
    wait_until(lambda: running.done == 1500 and running.health.ok, 90, "all records, and being ready again")
    running.stop()


@pytest.mark.fault("F51")
def test_a_start_in_an_outage_waits_for_the_broker(own_stack: OwnStack, breakable_scenario: ScenarioFactory) -> None:
    at = breakable_scenario(accepts, 3, {"kafka.request_timeout_s": 2})
    at.produce([b"value"] * 10)
    own_stack.broker.stop()
    running = at.start()
    wait_until(lambda: "the broker can't be reached" in running.health.reasons, what="not being ready")
    own_stack.broker.start()
    wait_until(lambda: running.done == 10, what="all records")
    running.stop()


@pytest.mark.fault("F5")
def test_a_stop_in_an_outage_ends_it(own_stack: OwnStack, breakable_scenario: ScenarioFactory, calls: Calls) -> None:
    at = breakable_scenario(
        f"{HANDLERS}:slow",
        3,
        {"kafka.request_timeout_s": 2},
        commit_interval_s=0.1,
        drain_timeout_s=3,
        flush_timeout_s=2,
    )
    at.produce(numbers(3000))
    service = calls.start(at).wait_ready()
    calls.wait_for(50)
    own_stack.broker.stop()
    # Neither the last commit nor the leaving of the group is answered.
    assert service.terminate() == 0
