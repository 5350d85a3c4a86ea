"""What those who look may see, or not be able to."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.history.entries import MALFORMED, WaitEntry
from tests.chaos.history.history import History
from tests.chaos.history.record import UNREADABLE_HEADERS
from tests.unit.chaos.breaches.planting import swapped, taken
from tests.unit.chaos.near_misses.allowing import allowed
from tests.unit.chaos.script import WAIT, WAIT_PARTITIONS, Script
from wait_registry.demo.fingerprint import Fingerprint, fingerprint


@allowed("a record whose headers nobody can read, dead-lettered without them")
def _(script: Script) -> History:
    place = script.publish()
    letter = script.unregistered(place, MALFORMED)
    script.commit(place)
    digests = letter.content
    record = script.published[-1]
    unreadable = replace(record, fingerprint=Fingerprint(digests.key, digests.value, UNREADABLE_HEADERS))
    script.published[-1] = unreadable
    bare = Fingerprint(digests.key, digests.value, fingerprint(None, None, ()).headers)
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, content=bare))
    return script.history()


@allowed("half a body of a caller that hung up")
def _(script: Script) -> History:
    entry = taken(script)
    call = script.call(entry, status=499)
    script.calls = swapped(script.calls, call, replace(call, body_sha256="half of it"))
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("somebody else's rubbish in the wait topic, put aside")
def _(script: Script) -> History:
    offset = script.ends[WAIT, 0]
    script.ends[WAIT, 0] += 1
    script.wait_log.append(WaitEntry(0, offset, script.now_ms, "rubbish", True, unreadable="no headers"))
    return script.history()


@allowed("a look that doesn't know the dead letter topic yet")
def _(script: Script) -> History:
    history = script.history()
    looks = [replace(look, letter_ends={}) for look in history.looks]
    # What is too large has only the last look for its dead letter: the reading's own.
    return replace(history, looks=[replace(look, committed={}) for look in looks])


@allowed("an end that a broker, just started, shows lower than it was")
def _(script: Script) -> History:
    place = script.publish(2)
    entry = script.register(place)
    script.look()
    script.commit(place)
    look = script.look()
    lower = replace(look, wait_ends=dict.fromkeys(range(WAIT_PARTITIONS), 0))
    script.looks = swapped(script.looks, look, lower)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("a handler that isn't our downstream: the tombstone's word is taken")
def _(script: Script) -> History:
    return replace(script.history(), calls=None)


@allowed("Postgres is not looked at")
def _(script: Script) -> History:
    return replace(script.history(), wait_rows=None, dead_letter_rows=None, quarantine_rows=None, progress_rows=None)
