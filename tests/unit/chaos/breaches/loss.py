"""Records lost (P1)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import RETRIED
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, named, swapped, taken
from tests.unit.chaos.script import Script


@breach(Kind.LOST, "resolved by a call that said of no record that it is for it")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    call = next(one for one in script.calls if one.wait_id == entry.wait_id)
    script.calls = swapped(script.calls, call, replace(call, topic=None, partition=None, offset=None))
    return script.history()


@breach(Kind.LOST, "resolved as retried, and nothing was done", Kind.EARLY_TOMBSTONE)
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.calls = [call for call in script.calls if call.wait_id != entry.wait_id]
    own = next(one for one in script.wait_log if one.wait_id == entry.wait_id and one.is_tombstone)
    script.wait_log = swapped(script.wait_log, own, replace(own, outcome=RETRIED))
    return script.history()


@breach(Kind.LOST, "done by its tombstone, and never called", Kind.EARLY_TOMBSTONE)
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.calls = [call for call in script.calls if call.wait_id != entry.wait_id]
    return script.history()


@breach(Kind.LOST, "passed by the commit without a trace", Kind.COMMITTED_PAST)
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.calls = [call for call in script.calls if call.wait_id != entry.wait_id]
    script.wait_log = [one for one in script.wait_log if one.wait_id != entry.wait_id]
    return script.history()


@breach(Kind.LOST, "failed, and its dead letter is not there", Kind.EARLY_TOMBSTONE)
def _(script: Script, choose: Choose) -> History:
    entry = script.failed(script.publish())
    script.dead_letters = [one for one in script.dead_letters if named(one) != entry.place]
    return script.history()


@breach(Kind.LOST, "a redelivery that was consumed and is gone", Kind.COMMITTED_PAST)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    again = script.redeliver(entry)
    script.commit(again.place)
    return script.history()


@breach(Kind.ABANDONED, "registered, committed, never called, and exported")
def _(script: Script, choose: Choose) -> History:
    script.export(taken(script))
    return script.history()


@breach(Kind.ABANDONED, "tried once, to be tried again, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=503)
    script.export(entry)
    return script.history()


@breach(Kind.ABANDONED, "never called, beside the faults of others")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-2", for_ms=100)
    script.fault("storm", "group", for_ms=100)
    script.export(entry)
    return script.history()


@breach(Kind.ABANDONED, "never called, long after the kill of the process before")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    script.fault("kill", "processor-1")
    script.look()
    script.wait(100)
    place = script.publish(1)
    entry = script.register(place, "processor-1/2")
    script.commit(place)
    script.export(entry)
    return script.history()


@breach(Kind.ABANDONED, "never called, and its process killed, or the machine still, when it had long expired")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.expire(entry)
    if choose([True, False]):
        script.fault("kill", "processor-1")
    else:
        script.look()
        script.now_ms += 4_000
        script.look()
    script.export(entry)
    return script.history()


@breach(Kind.ABANDONED, "renewed, and never called then")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.wait(5_000)
    script.look()
    script.export(script.register(entry.registration.original))
    return script.history()
