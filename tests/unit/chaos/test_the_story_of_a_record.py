"""A violation comes with everything that is known of its record, in the order of time."""

from __future__ import annotations

import pytest

from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.story import story
from tests.chaos.checker.verdict import check
from tests.chaos.history.entries import DEAD_LETTERED, EXPIRED
from tests.unit.chaos.breaches import BREACHES, Breach
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.run import clean_run


def test_it_tells_publication_looks_calls_letters_tombstones_rows_and_faults() -> None:
    script = clean_run()
    entry = taken(script)
    script.call(entry, status=400)
    script.wait(10)
    script.fault("kill", "processor-1", happened="pid 7 gone")
    script.letter(entry)
    script.export(entry, committed=False)
    script.export(entry)
    script.tombstone(entry, DEAD_LETTERED)
    assert entry.registration is not None
    told = story(Ledger(script.history()), entry.registration.original)
    milestones = [
        "published at orders/1@",
        "registration at wait",
        "committed",
        "call",
        "ends with status 400",
        "fault kill of processor-1 begins: pid 7 gone",
        "fault kill of processor-1 is over",
        "dead letter failed at dlq",
        "ABORTED or not decided",
        "dead letter expired at dlq",
        "tombstone expired at wait",
        "tombstone dead_lettered at wait",
        "at the end    row in dead_letter",
    ]
    found = -1
    for milestone in milestones:
        found = told.find(milestone, found + 1)
        assert found >= 0, f"{milestone!r} is missing, or out of its turn, in\n{told}"
    assert entry.wait_id in told


def test_what_is_told_by_an_id_is_told_alike() -> None:
    script = clean_run()
    entry = taken(script)
    ledger = Ledger(script.history())
    assert entry.registration is not None
    by_place = story(ledger, entry.registration.original).splitlines()
    assert story(ledger, entry.wait_id).splitlines()[1:] == by_place[1:]


@pytest.mark.parametrize("breach", BREACHES, ids=lambda breach: f"{breach.kind}: {breach.name}")
def test_every_breach_has_one(breach: Breach) -> None:
    verdict = check(breach.plant(clean_run(), lambda several: several[-1]))
    stories = verdict.stories(3)
    assert stories
    assert f"{verdict.violations[0].kind}: {verdict.violations[0].why}" in stories[0]


def test_no_more_are_told_than_asked_for() -> None:
    script = clean_run()
    for entry in [taken(script) for _ in range(4)]:
        script.fault("kill", "processor-1")
        script.letter(entry, EXPIRED)
    assert len(check(script.history()).stories(2)) == 2
