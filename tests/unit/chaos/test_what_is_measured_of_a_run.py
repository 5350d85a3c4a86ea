"""What no rule judges and every run tells: how long things took in calm."""

from __future__ import annotations

import pytest

from tests.chaos.checker.verdict import check
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.run import clean_run
from tests.unit.chaos.script import Script


def figure(script: Script, name: str) -> int:
    verdict = check(script.history())
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    return verdict.figures[name]


def test_the_longest_wait_for_a_registration_is_told() -> None:
    script = clean_run()
    script.wait(30_000)
    assert figure(script, "slowest_registration_ms") < 100
    place = script.publish()
    script.wait(20_000)
    script.fault("kill", "sweeper-1")
    script.done(place)
    assert 20_000 < figure(script, "slowest_registration_ms") < 21_000


@pytest.mark.parametrize("target", ["processor-3", "group", "broker", "everything", "downstream", "input"])
def test_what_a_fault_may_have_held_up_is_no_wait(target: str) -> None:
    script = clean_run()
    script.wait(30_000)
    script.fault("kill", target)
    place = script.publish()
    script.wait(20_000)
    script.done(place)
    assert figure(script, "slowest_registration_ms") < 100


def test_what_was_there_before_the_first_processor_waited_from_then_on() -> None:
    script = Script()
    places = [script.publish() for _ in range(3)]
    script.wait(40_000)
    for place in places:
        script.done(place)
    assert figure(script, "slowest_registration_ms") < 500


def test_the_longest_wait_for_an_export_is_told_up_to_the_first_fault_that_holds_up_exports() -> None:
    script = clean_run()
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.expire(entry)
    script.wait(20_000)
    script.export(entry)
    assert 20_000 < figure(script, "slowest_export_ms") < 21_000
    script.fault("kill", "sink-1")
    later = taken(script)
    script.fault("kill", "processor-1")
    script.expire(later)
    script.wait(60_000)
    script.export(later)
    assert 20_000 < figure(script, "slowest_export_ms") < 21_000
