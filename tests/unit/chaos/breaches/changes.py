"""Contents changed, and ids (P5)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import UNREGISTRABLE, Republished, WaitEntry
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.contents import other_content
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, named, swapped, taken, taken_at_once
from tests.unit.chaos.breaches.shown_tables import letter_rows
from tests.unit.chaos.script import DLQ, WAIT, Script
from wait_registry.demo.fingerprint import Fingerprint, fingerprint


@breach(Kind.CHANGED, "a wait record's content")
def _(script: Script, choose: Choose) -> History:
    entry = choose([one for one in script.wait_log if one.registration])
    assert entry.registration is not None
    said = replace(entry.registration, content=other_content(entry.registration.content, choose))
    script.wait_log = swapped(script.wait_log, entry, replace(entry, registration=said))
    return script.history()


@breach(Kind.CHANGED, "a wait record's timestamp, group or attempt")
def _(script: Script, choose: Choose) -> History:
    entry = choose([one for one in script.wait_log if one.registration])
    assert entry.registration is not None
    said = entry.registration
    others = [
        replace(said, timestamp_ms=0),
        replace(said, timestamp_type="append"),
        replace(said, delivery=said.delivery + 1),
    ]
    # The group names the redelivery topic as well: what was delivered again would be in a wrong one too.
    if entry.wait_id not in {again.lineage.wait_id for again in script.redelivered if again.lineage}:
        others.append(replace(said, group="another"))
    other = choose(others)
    script.wait_log = swapped(script.wait_log, entry, replace(entry, registration=other))
    return script.history()


@breach(Kind.CHANGED, "a wait record that names another redelivery than its own", Kind.MISNAMED)
def _(script: Script, choose: Choose) -> History:
    again = script.redelivered[0]
    entry = choose(done_ones(script))
    assert entry.registration is not None
    script.commit(script.publish(2))
    other = script.register(entry.registration.original, "processor-9/1")
    assert other.registration is not None
    wrong = replace(other, registration=replace(other.registration, source=again.place))
    script.wait_log = swapped(script.wait_log, other, wrong)
    script.call(other)
    script.tombstone(other)
    script.done(script.published[-1].coordinates)
    return script.history()


@breach(Kind.CHANGED, "a wait record of ours that can't be read", Kind.MISSING_ROW)
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    later = replace(entry, offset=script.ends[WAIT, entry.partition], append_ms=script.now_ms)
    script.ends[WAIT, entry.partition] += 1
    script.wait_log.append(replace(later, registration=None, unreadable="no WAIT_DELIVERY"))
    return replace(script.history(), quarantine_rows=[])


@breach(Kind.CHANGED, "a dead letter's content")
def _(script: Script, choose: Choose) -> History:
    letter = choose([one for one in script.dead_letters if one.committed])
    other = replace(letter, content=other_content(letter.content, choose))
    script.dead_letters = swapped(script.dead_letters, letter, other)
    return script.history()


@breach(Kind.CHANGED, "a dead letter's timestamp, group or attempt")
def _(script: Script, choose: Choose) -> History:
    letter = choose([one for one in script.dead_letters if one.committed and named(one)])
    assert letter.lineage is not None
    said = letter.lineage
    other = choose(
        [
            replace(said, timestamp_ms=7),
            replace(said, timestamp_type="none"),
            replace(said, group="another"),
            replace(said, delivery=9),
        ]
    )
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, lineage=other))
    return script.history()


@breach(Kind.CHANGED, "a dead letter of a record that nobody published")
def _(script: Script, choose: Choose) -> History:
    letter = script.unregistered(script.publish(), UNREGISTRABLE)
    script.published.pop()
    assert letter.lineage is not None
    return script.history()


@breach(Kind.CHANGED, "a `failed` dead letter that names no registration of its id, or another instance")
def _(script: Script, choose: Choose) -> History:
    script.failed(script.publish())
    letter = script.dead_letters[-1]
    assert letter.lineage is not None
    said = letter.lineage
    other = choose(
        [
            replace(said, registration=None),
            replace(said, registration=(0, 99_999)),
            replace(said, registration=(0, 99_999), delivery=77),
            replace(said, instance="somebody else"),
        ]
    )
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, lineage=other))
    return script.history()


@breach(Kind.CHANGED, "a dead letter of what was never registered, which names a registration")
def _(script: Script, choose: Choose) -> History:
    letter = next(one for one in script.dead_letters if one.reason == UNREGISTRABLE)
    assert letter.lineage is not None
    wrong = replace(letter, lineage=replace(letter.lineage, registration=script.wait_log[0].place))
    script.dead_letters = swapped(script.dead_letters, letter, wrong)
    return script.history()


@breach(Kind.CHANGED, "a tombstone without its outcome")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    offset = script.ends[WAIT, entry.partition]
    script.ends[WAIT, entry.partition] += 1
    script.wait_log.append(
        WaitEntry(entry.partition, offset, script.now_ms, entry.wait_id, True, unreadable="WAIT_OUTCOME is missing")
    )
    return script.history()


@breach(Kind.CHANGED, "something else in the dead letter topic")
def _(script: Script, choose: Choose) -> History:
    script.dead_letters.append(
        Republished(DLQ, 0, script.ends[DLQ, 0], script.now_ms, True, fingerprint(None, b"hello", ()))
    )
    script.ends[DLQ, 0] += 1
    return script.history()


@breach(Kind.CHANGED, "a record with readable headers dead-lettered as malformed, without them", Kind.UNFOUNDED)
def _(script: Script, choose: Choose) -> History:
    letter = script.unregistered(script.publish(), "malformed")
    bare = Fingerprint(letter.content.key, letter.content.value, fingerprint(None, None, ()).headers)
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, content=bare))
    script.commit(script.published[-1].coordinates)
    return script.history()


@breach(Kind.CHANGED, "a redelivery's content or attempt")
def _(script: Script, choose: Choose) -> History:
    again = script.redelivered[0]
    assert again.lineage is not None
    other = choose(
        [
            replace(again, content=other_content(again.content, choose)),
            replace(again, lineage=replace(again.lineage, delivery=5)),
            replace(again, lineage=replace(again.lineage, timestamp_type="append")),
        ]
    )
    script.redelivered = swapped(script.redelivered, again, other)
    return script.history()


@breach(Kind.CHANGED, "a body at the downstream")
def _(script: Script, choose: Choose) -> History:
    call = choose([one for one in script.calls if one.succeeded])
    script.calls = swapped(script.calls, call, replace(call, body_sha256="another"))
    return script.history()


@breach(Kind.CHANGED, "the attempt that a call said")
def _(script: Script, choose: Choose) -> History:
    call = choose(script.calls)
    assert call.delivery is not None
    script.calls = swapped(script.calls, call, replace(call, delivery=choose([None, call.delivery + 1, 7])))
    return script.history()


@breach(Kind.CHANGED, "a row of dead_letter")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    assert row.content is not None
    other = choose(
        [
            replace(row, content=other_content(row.content, choose)),
            replace(row, timestamp_ms=1),
            replace(row, timestamp_type="append"),
        ]
    )
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, other))


@breach(Kind.CHANGED, "a row of wait", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    history = script.history()
    assert history.wait_rows is not None
    (row,) = history.wait_rows
    assert row.registration is not None
    said = row.registration
    other = choose([replace(said, content=other_content(said.content, choose)), replace(said, timestamp_type="none")])
    return replace(history, wait_rows=[replace(row, registration=other)])


@breach(Kind.MISNAMED, "another id than the record's")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    own, other = entry.wait_id, "0" * 8 + entry.wait_id[8:]
    assert entry.registration is not None
    script.wait_log = [
        replace(
            one,
            wait_id=other,
            registration=None if one.registration is None else replace(one.registration, wait_id=other),
        )
        if one.wait_id == own
        else one
        for one in script.wait_log
    ]
    script.calls = [replace(call, wait_id=other) if call.wait_id == own else call for call in script.calls]
    return script.history()


@breach(Kind.MISNAMED, "the keys of two calls swapped")
def _(script: Script, choose: Choose) -> History:
    entries = [taken(script), taken_at_once(script, "processor-1/1")]
    calls = [script.call(entry) for entry in entries]
    for entry in entries:
        script.tombstone(entry)
    for one, other in (calls, reversed(calls)):
        script.calls = swapped(script.calls, one, replace(one, wait_id=other.wait_id))
    return script.history()


@breach(Kind.MISNAMED, "a dead letter of what can't be registered, under another id", Kind.COMMITTED_PAST)
def _(script: Script, choose: Choose) -> History:
    place = script.publish(2)
    script.large.add(place)
    letter = script.unregistered(place, UNREGISTRABLE)
    assert letter.lineage is not None
    wrong = replace(letter, lineage=replace(letter.lineage, wait_id="0" * 8 + letter.lineage.wait_id[8:]))
    script.dead_letters = swapped(script.dead_letters, letter, wrong)
    script.commit(place)
    return script.history()
