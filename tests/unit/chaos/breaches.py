"""One breach of each kind and way, planted into a run that is clean otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from tests.chaos.checker.sights import Sights
from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import (
    DEAD_LETTERED,
    DONE,
    EXPIRED,
    REDELIVERED,
    UNREGISTRABLE,
    Republished,
    WaitEntry,
)
from tests.chaos.history.history import History, RssSample
from tests.chaos.history.look import Look
from tests.chaos.history.rows import DeadLetterRow, ProgressRow, QuarantineRow, WaitRow
from tests.unit.chaos.script import DLQ, INPUT, LIMITS, WAIT, WAIT_PARTITIONS, Script
from waitreg.fingerprint import Fingerprint, fingerprint

T = TypeVar("T")


class Choose(Protocol):
    """Picks one of several."""

    def __call__(self, several: Sequence[T]) -> T:
        """Return one of them."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What is planted, which rule must find it, and which others do too since it can't be had without."""

    kind: Kind
    name: str
    plant: Callable[[Script, Choose], History]
    beside: frozenset[Kind] = frozenset()


BREACHES: list[Breach] = []


def breach(kind: Kind, name: str, *beside: Kind) -> Callable[[Callable[[Script, Choose], History]], None]:
    """Add a breach to the list."""

    def added(plant: Callable[[Script, Choose], History]) -> None:
        BREACHES.append(Breach(kind, name, plant, frozenset(beside)))

    return added


def swapped(several: Iterable[T], old: T, new: T) -> list[T]:
    """Return several with one of them replaced."""
    return [new if each is old else each for each in several]


def done_ones(script: Script) -> list[WaitEntry]:
    """Return registrations that were the only ones of their ids and ended as done, in calm times."""
    ended = {entry.wait_id for entry in script.wait_log if entry.outcome == DONE}
    count: dict[str, int] = {}
    for entry in script.wait_log:
        count[entry.wait_id] = count.get(entry.wait_id, 0) + 1
    return [
        entry
        for entry in script.wait_log
        if entry.registration and not entry.registration.source and entry.wait_id in ended and count[entry.wait_id] == 2
    ]


def taken(script: Script, place: tuple[str, int, int] | None = None) -> WaitEntry:
    """Return a registration of a new record, committed, long after the last fault."""
    script.wait(30_000)
    place = place or script.publish(1)
    entry = script.register(place)
    script.commit(place)
    script.look()
    return entry


# P1


@breach(Kind.LOST, "resolved although nothing was done")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.calls = [call for call in script.calls if call.wait_id != entry.wait_id]
    own = next(one for one in script.wait_log if one.wait_id == entry.wait_id and one.is_tombstone)
    script.wait_log = swapped(script.wait_log, own, replace(own, outcome="retried"))
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
    entry = taken(script)
    script.fault("kill", "processor-1")
    again = script.redeliver(entry)
    script.commit(again.place)
    return script.history()


# P2


@breach(Kind.COMMITTED_PAST, "a look shows the commit before the wait record")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script)[3:])
    assert entry.registration is not None
    topic, partition, offset = entry.registration.original
    first = Sights(script.looks).first(entry)
    assert first is not None
    before = script.looks[script.looks.index(first) - 1]
    early = replace(before, committed={**before.committed, (topic, partition): offset + 1})
    script.looks = swapped(script.looks, before, early)
    return script.history()


@breach(Kind.COMMITTED_PAST, "a look shows the commit before the dead letter of what is too large")
def _(script: Script, choose: Choose) -> History:
    place = script.publish(1)
    script.commit(place)
    script.look()
    script.unregistered(place, UNREGISTRABLE)
    script.look()
    return script.history()


@breach(Kind.COMMITTED_PAST, "only the reading at the end shows the commit, and nothing behind it", Kind.LOST)
def _(script: Script, choose: Choose) -> History:
    place = script.publish(2)
    history = script.history()
    return replace(history, committed_at_end={**history.committed_at_end, place[:2]: place[2] + 1})


# P3


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
    script.register(entry.registration.original, "host/2")
    script.export(entry)
    return script.history()


@breach(Kind.FALSE_EXPORT, "redelivered although it had been done")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
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


# P4


@breach(Kind.DOUBLED, "a second dead letter of one registration")
def _(script: Script, choose: Choose) -> History:
    entry = choose([one for one in script.wait_log if one.place in exported_places(script)])
    script.letter(entry, EXPIRED)
    return script.history()


@breach(Kind.DOUBLED, "dead-lettered and redelivered")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
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
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.redeliver(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done in calm times, and exported")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry)
    script.export(entry)
    return script.history()


@breach(Kind.FORGOTTEN, "done in calm times after its export")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    call = script.call(entry)
    script.export(entry)
    script.wait(100)
    script.calls = swapped(script.calls, call, replace(call, finished_ms=script.now_ms))
    script.tombstone(entry)
    return script.history()


# P5


def other_content(content: Fingerprint, choose: Choose) -> Fingerprint:
    """Return a content that differs in one part."""
    empty = fingerprint(b"", b"", ())
    return choose(
        [
            Fingerprint(None, content.value, content.headers),
            Fingerprint(empty.key, content.value, content.headers),
            Fingerprint(content.key, None, content.headers),
            Fingerprint(content.key, empty.value, content.headers),
            Fingerprint(content.key, content.value, empty.headers),
        ]
    )


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
    other = choose(
        [replace(said, timestamp_ms=0), replace(said, group="another"), replace(said, attempt=said.attempt + 1)]
    )
    script.wait_log = swapped(script.wait_log, entry, replace(entry, registration=other))
    return script.history()


@breach(Kind.CHANGED, "a wait record that names another redelivery than its own", Kind.MISNAMED)
def _(script: Script, choose: Choose) -> History:
    again = script.redelivered[0]
    entry = choose(done_ones(script))
    assert entry.registration is not None
    script.commit(script.publish(2))
    other = script.register(entry.registration.original, "host/9")
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
    script.wait_log.append(replace(later, registration=None, unreadable="no WAIT_ATTEMPT"))
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
    other = choose([replace(said, timestamp_ms=7), replace(said, group="another"), replace(said, attempt=9)])
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, lineage=other))
    return script.history()


@breach(Kind.CHANGED, "a dead letter of a record that nobody published")
def _(script: Script, choose: Choose) -> History:
    letter = script.unregistered(script.publish(), UNREGISTRABLE)
    script.published.pop()
    assert letter.lineage is not None
    return script.history()


@breach(Kind.CHANGED, "something else in the dead letter topic")
def _(script: Script, choose: Choose) -> History:
    script.dead_letters.append(
        Republished(DLQ, 0, script.ends[DLQ, 0], script.now_ms, True, fingerprint(None, b"hello", ()))
    )
    script.ends[DLQ, 0] += 1
    return script.history()


@breach(Kind.CHANGED, "a record with readable headers dead-lettered as malformed, without them")
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
            replace(again, lineage=replace(again.lineage, attempt=5)),
        ]
    )
    script.redelivered = swapped(script.redelivered, again, other)
    return script.history()


@breach(Kind.CHANGED, "a body at the downstream")
def _(script: Script, choose: Choose) -> History:
    call = choose([one for one in script.calls if one.succeeded])
    script.calls = swapped(script.calls, call, replace(call, body_sha256="another"))
    return script.history()


@breach(Kind.CHANGED, "a row of dead_letter")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    assert row.content is not None
    other = choose([replace(row, content=other_content(row.content, choose)), replace(row, timestamp_ms=1)])
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, other))


@breach(Kind.CHANGED, "a row of wait", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    history = script.history()
    assert history.wait_rows is not None
    (row,) = history.wait_rows
    assert row.registration is not None
    other = replace(row.registration, content=other_content(row.registration.content, choose))
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


@breach(Kind.MISNAMED, "a dead letter of what can't be registered, under another id", Kind.COMMITTED_PAST)
def _(script: Script, choose: Choose) -> History:
    place = script.publish(2)
    letter = script.unregistered(place, UNREGISTRABLE)
    assert letter.lineage is not None
    wrong = replace(letter, lineage=replace(letter.lineage, wait_id="0" * 8 + letter.lineage.wait_id[8:]))
    script.dead_letters = swapped(script.dead_letters, letter, wrong)
    script.commit(place)
    return script.history()


# P6


@breach(Kind.ORPHAN_ROW, "a row of what was resolved")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    return replace(script.history(), wait_rows=[WaitRow(entry.wait_id, entry.place, entry.registration)])


@breach(Kind.ORPHAN_ROW, "a row of a dead letter that was aborted, or never was")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    aborted = [letter.place for letter in script.dead_letters if not letter.committed]
    place = choose([*aborted, (DLQ, 0, 7_000)])
    return replace(history, dead_letter_rows=[*letter_rows(history), replace(row, place=place)])


@breach(Kind.ORPHAN_ROW, "something readable in quarantine")
def _(script: Script, choose: Choose) -> History:
    entry = choose(script.wait_log)
    return replace(script.history(), quarantine_rows=[QuarantineRow((WAIT, *entry.place), "?")])


@breach(Kind.ORPHAN_ROW, "a position in a topic that the sink doesn't read")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    return replace(history, progress_rows=[*progress(history), ProgressRow(INPUT, 0, 3)])


@breach(Kind.MISSING_ROW, "a dead letter without its row")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    rows = letter_rows(history)
    row = choose(rows)
    return replace(history, dead_letter_rows=[one for one in rows if one is not row])


@breach(Kind.MISSING_ROW, "a standing registration without its row", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    return replace(script.history(), wait_rows=[])


@breach(Kind.MISSING_ROW, "what can't be read isn't in quarantine")
def _(script: Script, choose: Choose) -> History:
    offset = script.ends[WAIT, 0]
    script.ends[WAIT, 0] += 1
    script.wait_log.append(WaitEntry(0, offset, script.now_ms, "rubbish", True, unreadable="no headers"))
    return replace(script.history(), quarantine_rows=[])


@breach(Kind.MISSING_ROW, "a partition without a position")
def _(script: Script, choose: Choose) -> History:
    # Without dead letters in it: those would have rows from nowhere.
    history = script.history()
    partition = choose(range(WAIT_PARTITIONS))
    kept = [row for row in progress(history) if (row.topic, row.partition) != (WAIT, partition)]
    return replace(history, progress_rows=kept)


@breach(Kind.ROW_DIFFERS, "any column of dead_letter")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    others: list[dict[str, Any]] = [
        {"reason": "blocked"},
        {"time_ms": 1},
        {"wait_id": "another"},
        {"registration": (9, 9)},
        {"group": None},
        {"instance": "another"},
        {"attempt": 7},
        {"unreadable": "headers are no list"},
    ]
    other = replace(row, **choose(others))
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, other))


@breach(Kind.ROW_DIFFERS, "a late completion that isn't marked, or a mark without one")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    finished = {entry.wait_id for entry in script.wait_log if entry.outcome in (DONE, DEAD_LETTERED)}
    marked = [row for row in letter_rows(history) if row.finished_late]
    others = [row for row in letter_rows(history) if row.wait_id not in finished and not row.finished_late]
    row = choose([*marked, *others])
    turned = replace(row, finished_late=not row.finished_late)
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, turned))


@breach(Kind.ROW_DIFFERS, "any column of wait", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    history = script.history()
    assert history.wait_rows is not None
    (row,) = history.wait_rows
    said = row.registration
    assert said is not None
    other = choose(
        [
            replace(row, place=(row.place[0], row.place[1] - 1)),
            replace(row, registration=None, unreadable="attempt is null"),
            replace(row, registration=replace(said, expires_at_ms=said.expires_at_ms + 1)),
            replace(row, registration=replace(said, instance="another")),
            replace(row, registration=replace(said, source=said.original)),
            replace(row, registration=replace(said, dead_letter_topic="another")),
        ]
    )
    return replace(history, wait_rows=[other])


@breach(Kind.ROW_DIFFERS, "a position behind the log's end")
def _(script: Script, choose: Choose) -> History:
    before = progress(script.history())
    entry = script.done(script.publish())
    moved = [row for row in before if (row.topic, row.partition) == (WAIT, entry.partition)]
    others = [row for row in progress(script.history()) if (row.topic, row.partition) != (WAIT, entry.partition)]
    return replace(script.history(), progress_rows=[*others, *moved])


@breach(Kind.ROW_DIFFERS, "a position ahead of the log's end")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(progress(history))
    ahead = replace(row, next_offset=row.next_offset + 1)
    return replace(history, progress_rows=swapped(progress(history), row, ahead))


# Order


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


@breach(Kind.EARLY_TOMBSTONE, "before its registration")
def _(script: Script, choose: Choose) -> History:
    place = script.publish(1)
    not_yet = script.register(place)
    script.wait_log.pop()
    script.ends[WAIT, not_yet.partition] -= 1
    script.call(not_yet)
    script.tombstone(not_yet)
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


@breach(Kind.EARLY_TOMBSTONE, "of an id that was never registered")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    script.tombstone(replace(entry, wait_id="0" * 8 + entry.wait_id[8:]), "retried")
    return script.history()


# P7


@breach(Kind.BOUND, "calls in flight")
def _(script: Script, choose: Choose) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=2)
    return script.history()


@breach(Kind.BOUND, "registrations unfinished by one instance")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    entries = [taken_at_once(script, "host/1") for _ in range(LIMITS.look_ahead + 1)]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "memory")
def _(script: Script, choose: Choose) -> History:
    sample = RssSample(script.now_ms, "processor-2", 77, LIMITS.rss_bytes["processor"] + 1)
    return replace(script.history(), limits=replace(LIMITS, samples=[sample]))


def together(script: Script, count: int, instances: int) -> None:
    """Let so many calls be in flight at once, long after the last fault."""
    script.wait(30_000)
    entries = [taken_at_once(script, f"host/{1 + number % instances}") for number in range(count)]
    script.wait(5)
    began_ms = script.now_ms
    for entry in entries:
        call = script.call(entry)
        script.calls = swapped(script.calls, call, replace(call, started_ms=began_ms))
        script.tombstone(entry)


def taken_at_once(script: Script, instance: str) -> WaitEntry:
    """Return a registration of a new record, committed."""
    place = script.publish(2)
    entry = script.register(place, instance)
    script.commit(place)
    return entry


def without(look: Look, letter: Republished) -> Look:
    """Return a look that does not see a dead letter."""
    place = (letter.topic, letter.partition)
    seen = look.letter_ends.get(place, 0)
    return replace(look, letter_ends={**look.letter_ends, place: min(seen, letter.offset)})


def named(letter: Republished) -> tuple[int, int] | None:
    """Return the registration that a dead letter names."""
    return None if letter.lineage is None else letter.lineage.registration


def exported_places(script: Script) -> set[tuple[int, int] | None]:
    """Return the registrations that have an `expired` dead letter."""
    return {named(letter) for letter in script.dead_letters if letter.reason == EXPIRED and letter.committed}


def letter_rows(history: History) -> Sequence[DeadLetterRow]:
    """Return the rows of ``dead_letter``."""
    assert history.dead_letter_rows is not None
    return history.dead_letter_rows


def progress(history: History) -> Sequence[ProgressRow]:
    """Return the rows of ``sink_progress``."""
    assert history.progress_rows is not None
    return history.progress_rows
