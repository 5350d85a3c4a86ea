"""What may be registered, called or dead-lettered again, and how late."""

from __future__ import annotations

from tests.chaos.history.entries import DEAD_LETTERED, UNREGISTRABLE
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.near_misses.allowing import allowed
from tests.unit.chaos.script import TOLD, Script


@allowed("a registration renewed before it started, and done once")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    renewed = script.register(entry.registration.original)
    script.call(renewed)
    script.tombstone(renewed)
    return script.history()


@allowed("handled by both owners of a partition that moved, and resolved twice")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    for one in (entry, again):
        script.call(one)
        script.tombstone(one)
    return script.history()


@allowed("done twice before its tombstone: the first answer came too late for its caller")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("done under its first registration, whose tombstone a sleeper's second one followed")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.call(entry)
    script.tombstone(entry)
    late = script.register(entry.registration.original, "processor-2/1")
    script.export(late)
    return script.history()


@allowed("called under the attempt of either registration")
def _(script: Script) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    place = script.redeliver(entry).place
    again = script.register(place, policy="redeliver")
    script.commit(place)
    script.call(again)
    script.tombstone(again)
    return script.history()


@allowed("begun with just the time left that its attempts take, and begun again with that for one")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    expires_at_ms = entry.registration.expires_at_ms
    script.wait(expires_at_ms - TOLD.attempt_ms * TOLD.tries - 3 - script.now_ms)
    script.call(entry, status=503)
    script.look()
    script.wait(expires_at_ms - TOLD.attempt_ms - 3 - script.now_ms)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("begun late by a process that was frozen, or waited for the broker, or a downstream that was away")
def _(script: Script) -> History:
    for name, target in (("freeze", "processor-1"), ("freeze", "broker"), ("gone", "downstream")):
        script.wait(40_000)
        entry = taken(script)
        script.fault(name, target, for_ms=7_500)
        script.call(entry)
        script.tombstone(entry)
    return script.history()


@allowed("begun late under its first registration, by another owner under a second one")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.wait(6_500)
    script.look()
    again = script.register(entry.registration.original, "processor-2/1")
    script.call(again)
    script.tombstone(again)
    return script.history()


@allowed("begun late on a machine that stood still")
def _(script: Script) -> History:
    entry = taken(script)
    script.now_ms += 7_000
    script.look()
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("failed under each of two registrations, since its partition had moved")
def _(script: Script) -> History:
    for name, target in (("kill", "processor-2"), ("freeze", "broker"), ("add_partitions", "input")):
        script.wait(40_000)
        entry = taken(script)
        assert entry.registration is not None
        script.fault(name, target, for_ms=10)
        for one in (entry, script.register(entry.registration.original)):
            script.call(one, status=400)
            script.letter(one)
            script.look()
            script.tombstone(one, DEAD_LETTERED)
    return script.history()


@allowed("not registrable, and dead-lettered whenever it was taken, in a storm")
def _(script: Script) -> History:
    place = script.publish(1)
    script.large.add(place)
    script.fault("storm", "group", for_ms=3_000)
    for _ in range(6):
        script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@allowed("not registrable, and dead-lettered twice, while the machine stood still")
def _(script: Script) -> History:
    script.wait(60_000)
    place = script.publish(1)
    script.large.add(place)
    script.unregistered(place, UNREGISTRABLE)
    script.look()
    script.now_ms += 4_000
    script.look()
    script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@allowed("handled as often as it has tries, each time that it is registered")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    for _ in range(2 * TOLD.tries):
        script.call(again)
    script.tombstone(again)
    return script.history()
