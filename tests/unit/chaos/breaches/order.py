"""Tombstones before what they depend on."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, EXPIRED, RETRIED, Republished
from tests.chaos.history.history import History
from tests.chaos.history.look import Look
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, named, swapped, taken
from tests.unit.chaos.script import TOLD, WAIT, WAIT_PARTITIONS, Script


@breach(Kind.EARLY_TOMBSTONE, "before its call has ended")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    call = next(one for one in script.calls if one.wait_id == entry.wait_id)
    script.calls = swapped(script.calls, call, replace(call, finished_ms=call.finished_ms + 200))
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "done twice by one call")
def _(script: Script, choose: Choose) -> History:
    script.tombstone(choose(done_ones(script)))
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "discarded by nobody")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=499)
    script.tombstone(entry, "discarded")
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "discarded although its call succeeded")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.tombstone(entry, DISCARDED)
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "done, although its call was answered with a status that discards", Kind.LOST)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=404)
    script.tombstone(entry)
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "retried, which nothing does, beside a call that succeeded")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.tombstone(entry, RETRIED)
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "discarded by a status that was to be dead-lettered")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=400)
    script.tombstone(entry, "discarded")
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "before its registration", Kind.UNPAIRED)
def _(script: Script, choose: Choose) -> History:
    place = script.publish(1)
    not_yet = script.register(place)
    script.wait_log.pop()
    script.ends[WAIT, not_yet.partition] -= 1
    script.tombstone(not_yet, EXPIRED)
    script.done(place)
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "before its dead letter was made")
def _(script: Script, choose: Choose) -> History:
    script.look()
    entry = taken(script)
    script.call(entry, status=400)
    script.tombstone(entry, DEAD_LETTERED)
    script.wait(20)
    script.letter(entry)
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "seen by a look that does not see its dead letter")
def _(script: Script, choose: Choose) -> History:
    entry = script.failed(script.publish())
    letter = next(one for one in script.dead_letters if named(one) == entry.place)
    history = script.history()
    return replace(history, looks=[without(look, letter) for look in history.looks])


@breach(Kind.EARLY_TOMBSTONE, "of an export, stable at a look that does not see its dead letter")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    letter, _ = script.export(entry)
    history = script.history()
    return replace(history, looks=[without(look, letter) for look in history.looks])


@breach(Kind.EARLY_TOMBSTONE, "in another partition than its wait record")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.tombstone(replace(entry, partition=(entry.partition + 1) % WAIT_PARTITIONS))
    return script.history()


@breach(Kind.EARLY_TOMBSTONE, "of an id that was never registered", Kind.UNPAIRED)
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.tombstone(replace(entry, wait_id="0" * 8 + entry.wait_id[8:]), EXPIRED)
    return script.history()


@breach(Kind.EARLY_CALL, "the downstream was called before the registration stood")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    call = script.call(entry)
    script.tombstone(entry)
    early = replace(call, started_ms=entry.append_ms - 500, finished_ms=entry.append_ms - 400)
    script.calls = swapped(script.calls, call, early)
    return script.history()


@breach(Kind.HANDLED_AGAIN, "three times in calm, with two tries")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    for _ in range(TOLD.tries + 1):
        script.call(entry)
    script.tombstone(entry)
    return script.history()


@breach(Kind.LATE_CALL, "begun with time left for one of its two attempts, or a second one with too little for that")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    expires_at_ms = entry.registration.expires_at_ms
    if choose([True, False]):
        script.wait(expires_at_ms - TOLD.attempt_ms * TOLD.tries + 1 - script.now_ms)
    else:
        script.call(entry, status=503)
        script.wait(expires_at_ms - TOLD.attempt_ms + 1 - script.now_ms)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@breach(Kind.LATE_CALL, "begun when it had expired, beside the faults of others")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-2")
    script.look()
    script.fault("kill", "sweeper-1")
    script.look()
    script.expire(entry)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@breach(Kind.LATE_CALL, "begun late although it was registered again, since that had come to an end as well")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original)
    script.expire(again)
    script.call(again)
    script.tombstone(again)
    return script.history()


def without(look: Look, letter: Republished) -> Look:
    """Return a look that does not see a dead letter."""
    place = (letter.topic, letter.partition)
    seen = look.letter_ends.get(place, 0)
    return replace(look, letter_ends={**look.letter_ends, place: min(seen, letter.offset)})
