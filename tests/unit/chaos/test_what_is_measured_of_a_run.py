"""What no rule judges and every run tells: what was left behind without a fault, and how long things took in calm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker.verdict import check
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.run import clean_run
from tests.unit.chaos.script import Script


def figure(script: Script, name: str) -> int:
    verdict = check(script.history())
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    return verdict.figures[name]


def test_faults_explain_all_that_is_left_behind_in_a_run_that_keeps_its_promises() -> None:
    assert figure(clean_run(), "abandoned") == 0


def dropped(script: Script) -> None:
    script.export(taken(script))


def dropped_after_an_answer(script: Script) -> None:
    entry = taken(script)
    script.call(entry, status=503)
    script.export(entry)


def dropped_beside_the_fault_of_another(script: Script) -> None:
    entry = taken(script)
    script.fault("kill", "processor-2", for_ms=100)
    script.fault("storm", "group", for_ms=100)
    script.export(entry)


def dropped_long_after_the_kill_of_the_one_before(script: Script) -> None:
    script.wait(30_000)
    script.fault("kill", "processor-1")
    script.look()
    place = script.publish(1)
    entry = script.register(place, "processor-1/2")
    script.commit(place)
    script.export(entry)


@pytest.mark.parametrize(
    "drop",
    [
        dropped,
        dropped_after_an_answer,
        dropped_beside_the_fault_of_another,
        dropped_long_after_the_kill_of_the_one_before,
    ],
)
def test_what_was_left_behind_without_a_fault_is_counted(drop: Callable[[Script], None]) -> None:
    script = clean_run()
    drop(script)
    assert figure(script, "abandoned") == 1


def test_the_story_of_what_was_left_behind_is_told_though_the_run_is_kept() -> None:
    script = clean_run()
    assert check(script.history()).stories_of_abandoned() == []
    entry = taken(script)
    script.export(entry)
    verdict = check(script.history())
    (told,) = verdict.stories_of_abandoned()
    assert verdict.passed
    assert "left behind without a fault" in told and entry.wait_id in told


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("kill", "processor-1"),
        ("freeze", "processor-1"),
        ("hold_produce", "group"),
        ("kill", "group"),
        ("kill", "everything"),
        ("freeze", "broker"),
    ],
)
def test_what_its_own_process_or_the_broker_had_explains_it(name: str, target: str) -> None:
    script = clean_run()
    entry = taken(script)
    script.fault(name, target)
    script.export(entry)
    assert figure(script, "abandoned") == 0


def test_what_changed_hands_is_not_counted() -> None:
    script = clean_run()
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    script.export(again)
    assert figure(script, "abandoned") == 0


def test_what_lived_while_the_machine_stood_still_is_not_counted() -> None:
    script = clean_run()
    entry = taken(script)
    script.export(entry)
    history = script.history()
    from_ms = entry.append_ms + 3_000
    seldom = [look for look in history.looks if not from_ms < look.ended_ms < from_ms + 3_000]
    assert check(replace(history, looks=seldom)).figures["abandoned"] == 0


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
