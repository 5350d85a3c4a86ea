"""Commits that pass what isn't acknowledged (P2)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.sights import Sights
from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import UNREGISTRABLE
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, swapped
from tests.unit.chaos.script import Script


@breach(Kind.COMMITTED_PAST, "a look shows the commit before the wait record")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script)[3:])
    assert entry.registration is not None
    topic, partition, offset = entry.registration.original
    first = Sights(script.looks).first(entry)
    assert first is not None
    before = script.looks[script.looks.index(first) - 1]
    early = replace(before, committed={**before.committed, (topic, partition): offset + 1})
    script.looks = swapped(script.looks, before, early)
    return script.history()


@breach(Kind.COMMITTED_PAST, "a look shows the commit before the dead letter of what is too large")
def _(script: Script, choose: Choose) -> History:
    place = script.publish(1)
    script.large.add(place)
    script.commit(place)
    script.look()
    script.unregistered(place, UNREGISTRABLE)
    script.look()
    return script.history()


@breach(Kind.COMMITTED_PAST, "only the reading at the end shows the commit, and nothing behind it", Kind.LOST)
def _(script: Script, choose: Choose) -> History:
    place = script.publish(2)
    history = script.history()
    return replace(history, committed_at_end={**history.committed_at_end, place[:2]: place[2] + 1})
