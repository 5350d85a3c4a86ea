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
