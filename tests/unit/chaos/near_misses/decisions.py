"""What was decided rightly, though it looks odd: exports, failures, times to live."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, EXPIRED
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.decisions import saying
from tests.unit.chaos.breaches.planting import taken
from tests.unit.chaos.near_misses.allowing import allowed
from tests.unit.chaos.script import TOLD, Script


@allowed("discarded by the downstream's status")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry, status=404)
    script.tombstone(entry, DISCARDED)
    return script.history()


@allowed("resolved while its export was on its way")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.expire(entry)
    script.wait(3_000)
    script.call(entry)
    script.tombstone(entry)
    script.export(entry)
    return script.history()


@allowed("resolved while the sweeper was frozen between reading and writing")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.expire(entry)
    began_ms = script.now_ms
    script.wait(100)
    script.call(entry)
    script.tombstone(entry)
    script.wait(6_000)
    script.faults.append(replace(script.faults[-1], target="sweeper-1", began_ms=began_ms, ended_ms=script.now_ms))
    script.wait(500)
    script.export(entry)
    return script.history()


@allowed("exported in the very millisecond in which it fell due")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.fault("kill", "processor-1")
    script.wait(entry.registration.expires_at_ms + TOLD.skew_ms - 4 - script.now_ms)
    script.letter(entry, EXPIRED)
    script.tombstone(entry, EXPIRED)
    return script.history()


@allowed("given up after the time of a try, which no call shows")
def _(script: Script) -> History:
    entry = taken(script)
    script.wait(TOLD.attempt_ms)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("failed at once, all tries answered with what is to be tried again, or one with what isn't")
def _(script: Script) -> History:
    for statuses in ((503, 503), (0, 503), (503, 400), (400,)):
        entry = taken(script)
        for status in statuses:
            script.call(entry, status=status)
        script.letter(entry)
        script.look()
        script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("failed while the downstream refused connections")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("gone", "downstream", for_ms=100)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("registered with less time left, since its way to a frozen broker was long")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.fault("freeze", "broker", for_ms=7_000)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("registered with less time left, since what its group produces was held")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.fault("hold_produce", "group", for_ms=6_500)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("registered with less time left, while the machine stood still")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    script.look()
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.now_ms += 7_000
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.look()
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("too large to be delivered again, and dead-lettered in its place")
def _(script: Script) -> History:
    entry = taken(script, policy="redeliver")
    assert entry.registration is not None
    script.large.add(entry.registration.original)
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()
