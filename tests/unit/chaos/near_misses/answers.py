"""What was answered, and not ended for a reason."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import swapped, taken
from tests.unit.chaos.near_misses.allowing import allowed
from tests.unit.chaos.script import Script


@allowed("a tombstone of the very millisecond in which its call ended")
def _(script: Script) -> History:
    entry = taken(script)
    call = script.call(entry)
    stone = script.tombstone(entry)
    script.calls = swapped(script.calls, call, replace(call, finished_ms=stone.append_ms + 1))
    return script.history()


@allowed("answered just before its processor was killed")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry)
    script.wait(1_000)
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()


@allowed("failed for good just before its processor was killed, or given up by its caller")
def _(script: Script) -> History:
    for status in (400, 499):
        entry = taken(script)
        script.call(entry, status=status)
        script.wait(1_000)
        script.fault("kill", "processor-1")
        script.export(entry)
    return script.history()


@allowed("answered while the broker was away")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("kill", "broker", for_ms=3_000)
    script.call(entry)
    script.export(entry)
    return script.history()


@allowed("answered, and exported before the tombstone could come, on a machine that stood still")
def _(script: Script) -> History:
    entry = taken(script)
    script.expire(entry)
    script.wait(-3_000)
    script.call(entry)
    script.wait(3_000)
    script.export(entry)
    script.tombstone(entry)
    return script.history()


@allowed("answered by a process whose link was slow a while ago")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("slow_broker_link", "processor-1")
    script.wait(2_000)
    script.call(entry)
    script.export(entry)
    return script.history()


@allowed("answered by a member of a storm, who was told to end")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    entry = script.register(place, "visitor-2/1")
    script.commit(place)
    script.call(entry)
    script.fault("storm", "group")
    script.export(entry)
    return script.history()


@allowed("answered just before all processors were killed, or all services")
def _(script: Script) -> History:
    for target in ("group", "everything"):
        entry = taken(script)
        script.call(entry)
        script.wait(1_000)
        script.fault("kill", target)
        script.export(entry)
    return script.history()
