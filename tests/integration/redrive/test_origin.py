"""A redrive to the input topic keeps what its records are, or is refused."""

from __future__ import annotations

import pytest

from redrive.category import Category
from redrive.target import ORIGIN
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_canary import executor, marked, pauses, sink_of
from tests.support.waiting import wait_until
from wait_registry.records.operation import State
from wait_registry.settings.processor import RedeliverTo

COUNT = 12


@pytest.mark.guarantee("P1.27", "P1.42", "R1.13")
def test_a_record_redriven_to_its_input_is_the_same_record_there(at: Scenario, handling: Handling) -> None:
    at.topics.produce(at.input, [b"another"] * 20)
    at.dead_letters(COUNT)
    at.read()
    assert at.request(target=ORIGIN).job.expected == {Category.IDENTITY_LOST: COUNT}, "no member has committed anything"

    plain = handling.start()
    wait_until(lambda: plain.done == 20, what="what the input holds")
    assert at.request(target=ORIGIN).job.expected == {Category.IDENTITY_LOST: COUNT}
    plain.stop()

    handling.start(redeliver_to=RedeliverTo.ORIGIN)
    handling.calls.clear()
    handling.refused = {b"value %d" % number for number in range(3)}
    asked = at.request(target=ORIGIN, canary=4)
    assert asked.job.expected == {Category.REDRIVEN: COUNT}
    with sink_of(at):
        assert executor(at, asked.job)().state is State.PAUSED
    assert pauses(at) == [("system", "3 of 4 canary records came back as dead letters, redrive.canary_above is 0.1")]
    assert marked(at) == 4
    assert {(call.delivery, call.offset) for call in handling.calls} == {(2, offset) for offset in range(4)}
    assert {call.idempotency_key for call in handling.calls} == {at.lineage(offset).wait_id for offset in range(4)}
