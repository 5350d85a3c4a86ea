"""What a processor leaves behind for the sweeper, and must not be blamed for."""

from __future__ import annotations

import pytest

from tests.chaos.checker.verdict import check
from tests.unit.chaos.breaches.decisions import saying
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.run import clean_run
from tests.unit.chaos.script import TOLD, Script


def assert_nothing_is_found(script: Script) -> None:
    verdict = check(script.history())
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []


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
    assert_nothing_is_found(script)


def test_so_does_the_death_of_the_process_before_the_broker_had_its_registration() -> None:
    script = clean_run()
    script.wait(30_000)
    place = script.publish(1)
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.fault("kill", "processor-1", for_ms=200)
    script.wait(100)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.export(entry)
    assert_nothing_is_found(script)


def test_what_changed_hands_is_not_judged() -> None:
    script = clean_run()
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    script.export(again)
    assert_nothing_is_found(script)


def test_what_came_back_to_its_process_after_the_export_had_moved_in_between() -> None:
    script = clean_run()
    entry = taken(script)
    assert entry.registration is not None
    script.export(entry)
    again = script.register(entry.registration.original)
    script.call(again)
    script.tombstone(again)
    # Done behind its export: the table says so.
    assert_nothing_is_found(script)


def test_what_lived_while_the_machine_stood_still_is_not_judged() -> None:
    script = clean_run()
    entry = taken(script)
    script.look()
    script.now_ms += 3_000
    script.look()
    script.export(entry)
    assert_nothing_is_found(script)


def test_what_was_called_has_a_while_beyond_its_expiry_until_a_fault_explains_it() -> None:
    script = clean_run()
    entry = taken(script)
    script.call(entry, status=503)
    script.expire(entry)
    script.fault("kill", "processor-1")
    script.wait(6_000)
    script.export(entry)
    assert_nothing_is_found(script)
