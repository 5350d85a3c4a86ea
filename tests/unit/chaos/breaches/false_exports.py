"""Exports of what was resolved, renewed, or not due (P3)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import EXPIRED
from tests.chaos.history.history import FaultDone, History
from tests.unit.chaos.breaches.planting import Choose, breach, swapped, taken
from tests.unit.chaos.script import TOLD, Script


@breach(Kind.FALSE_EXPORT, "done long before its export")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.tombstone(entry)
    script.export(entry)
    return script.history()


@breach(Kind.FALSE_EXPORT, "registered again long before its export")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.register(entry.registration.original, "processor-2/1")
    script.export(entry)
    return script.history()


@breach(Kind.FALSE_EXPORT, "redelivered although it had been done")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.call(entry)
    script.tombstone(entry)
    script.done(script.redeliver(entry).place)
    return script.history()


@breach(Kind.FALSE_EXPORT, "done while the sweeper was frozen long before")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("freeze", "sweeper-1", happened="state T")
    script.call(entry)
    script.tombstone(entry)
    script.export(entry)
    return script.history()


@breach(Kind.FALSE_EXPORT, "done while a sweeper was killed, or had lost its session: it forgot what it had read")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.expire(entry)
    began_ms = script.now_ms
    script.wait(100)
    script.call(entry)
    script.tombstone(entry)
    script.wait(6_000)
    name = choose(["kill", "terminate", "cut_postgres_link"])
    script.faults.append(FaultDone(name, "sweeper-2", began_ms, script.now_ms, "pid 7 gone"))
    script.wait(500)
    script.export(entry)
    return script.history()


@breach(Kind.FALSE_EXPORT, "exported a minute after it was done, by a DLQ_TIME before that")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.fault("freeze", "processor-1")
    script.expire(entry)
    script.wait(2_000)
    script.call(entry)
    script.tombstone(entry)
    script.wait(60_000)
    letter, _ = script.export(entry)
    early = replace(letter, time_ms=entry.registration.expires_at_ms)
    script.dead_letters = swapped(script.dead_letters, letter, early)
    return script.history()


@breach(Kind.FALSE_EXPORT, "exported before its expiry, by a DLQ_TIME of after it")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.fault("kill", "processor-1")
    letter = script.letter(entry, EXPIRED)
    script.tombstone(entry, EXPIRED)
    late = replace(letter, time_ms=entry.registration.expires_at_ms + 600)
    script.dead_letters = swapped(script.dead_letters, letter, late)
    return script.history()


@breach(Kind.FALSE_EXPORT, "exported, or delivered again, after its expiry, before what clocks may differ by is over")
def _(script: Script, choose: Choose) -> History:
    again = choose([False, True])
    entry = taken(script, policy="redeliver" if again else "dlq")
    assert entry.registration is not None
    script.fault("kill", "processor-1")
    # The script's own exports come when a registration is due.
    early_ms = choose([30, 300, TOLD.skew_ms + 80])
    due_ms = entry.registration.expires_at_ms + TOLD.skew_ms
    if again:
        place = script.redeliver(entry).place
        script.redelivered[-1] = replace(script.redelivered[-1], timestamp_ms=due_ms - early_ms)
        script.done(place)
    else:
        letter, _ = script.export(entry)
        script.dead_letters = swapped(script.dead_letters, letter, replace(letter, time_ms=due_ms - early_ms))
    return script.history()


@breach(Kind.FALSE_EXPORT, "exported before its expiry")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.letter(entry, EXPIRED)
    script.tombstone(entry, EXPIRED)
    return script.history()


@breach(Kind.FALSE_EXPORT, "the export names another id's registration")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    letter, _ = script.export(entry)
    assert letter.lineage is not None
    other = next(one for one in script.wait_log if one.partition == entry.partition and one.registration)
    wrong = replace(letter, lineage=replace(letter.lineage, registration=other.place))
    script.dead_letters = swapped(script.dead_letters, letter, wrong)
    return script.history()


@breach(Kind.FALSE_EXPORT, "the export names no registration at all", Kind.UNPAIRED)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    letter, _ = script.export(entry)
    assert letter.lineage is not None
    wrong = replace(letter, lineage=replace(letter.lineage, registration=None))
    script.dead_letters = swapped(script.dead_letters, letter, wrong)
    return script.history()
