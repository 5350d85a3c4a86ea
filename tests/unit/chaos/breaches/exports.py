"""Exports doubled, without their tombstone, missing, or of what was done (P4)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import EXPIRED, REDELIVERED
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import Choose, breach, named, swapped, taken
from tests.unit.chaos.script import TOLD, Script


@breach(Kind.DOUBLED, "a second dead letter of one registration")
def _(script: Script, choose: Choose) -> History:
    entry = choose([one for one in script.wait_log if one.place in exported_places(script)])
    script.letter(entry, EXPIRED)
    return script.history()


@breach(Kind.DOUBLED, "dead-lettered and redelivered", Kind.MISROUTED)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    script.done(script.redeliver(entry).place)
    script.letter(entry, EXPIRED)
    return script.history()


@breach(Kind.UNPAIRED, "an expired tombstone without its dead letter")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.fault("kill", "processor-1")
    script.expire(entry)
    script.tombstone(entry, EXPIRED)
    return script.history()


@breach(Kind.UNPAIRED, "an expired dead letter whose tombstone was aborted", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.expire(entry)
    script.letter(entry, EXPIRED)
    script.tombstone(entry, EXPIRED, committed=False)
    return script.history()


@breach(Kind.UNPAIRED, "a dead letter beside a tombstone `redelivered`")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.expire(entry)
    script.letter(entry, EXPIRED)
    script.tombstone(entry, REDELIVERED)
    return script.history()


@breach(Kind.UNFINISHED, "a registration still stands")
def _(script: Script, choose: Choose) -> History:
    taken(script)
    return script.history()


@breach(Kind.UNFINISHED, "a record that nobody consumed")
def _(script: Script, choose: Choose) -> History:
    script.publish(choose([0, 1, 2]))
    return script.history()


@breach(Kind.UNFINISHED, "a redelivery that nobody consumed")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    script.redeliver(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done in calm times, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "failed for good, or to be discarded, in calm times, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=choose([400, *TOLD.discard_statuses]))
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done beside a fault of another processor, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.wait(1_000)
    script.fault(choose(["kill", "freeze", "slow_broker_link"]), "processor-2")
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done beside a storm of others that came and went, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.wait(1_000)
    script.fault("storm", "group")
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done by the next process of the name, long after the kill of the one before")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    script.fault("kill", "processor-1")
    place = script.publish(1)
    entry = script.register(place, "processor-1/2")
    script.commit(place)
    script.call(entry)
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done in calm times, long after its export")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    call = script.call(entry)
    script.export(entry)
    script.wait(6_000)
    script.calls = swapped(script.calls, call, replace(call, finished_ms=script.now_ms))
    script.tombstone(entry)
    return script.history()


def exported_places(script: Script) -> set[tuple[int, int] | None]:
    """Return the registrations that have an `expired` dead letter."""
    return {named(letter) for letter in script.dead_letters if letter.reason == EXPIRED and letter.committed}
