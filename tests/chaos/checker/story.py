"""The whole story of one record: everything that is known of it, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import Sights
from tests.chaos.history.entries import Republished, WaitEntry
from tests.chaos.history.history import Look
from wait_registry.demo.manifest import Coordinates

Event = tuple[int, str]
AROUND_MS = 3_000


def story(ledger: Ledger, about: Coordinates | str) -> str:
    """Tell what happened to a record, or to what has a wait id; faults around it included.

    Of the looks those are told that show a commit past it, or one of its entries, for the first time.
    """
    wait_ids = _wait_ids(ledger, about)
    original = about if isinstance(about, tuple) else ledger.original_of.get(about)
    events = sorted(_events(ledger, original, wait_ids))
    if not events:
        return f"{_title(about)}: nothing is known of it"
    first_ms, last_ms = events[0][0] - AROUND_MS, events[-1][0] + AROUND_MS
    for fault in ledger.history.faults:
        if overlaps(fault, first_ms, last_ms):
            proof = fault.happened or "NO PROOF"
            events.append((fault.began_ms, f"  fault {fault.name} of {fault.target} begins: {proof}"))
            events.append((fault.ended_ms, f"  fault {fault.name} of {fault.target} is over"))
    told = [f"  {words.time(moment_ms)}  {text}" for moment_ms, text in sorted(events)]
    title = f"{_title(about)}, wait id {', '.join(sorted(wait_ids)) or 'unknown'}"
    return "\n".join([title, *told, *_rows(ledger, original, wait_ids)])


def _title(about: Coordinates | str) -> str:
    return about if isinstance(about, str) else words.place(about)


def _wait_ids(ledger: Ledger, about: Coordinates | str) -> set[str]:
    if isinstance(about, str):
        return {about}
    found = {entry.wait_id for entry in ledger.registrations_by_original.get(about, ())}
    found |= {letter.lineage.wait_id for letter in ledger.letters_of.get(about, ()) if letter.lineage is not None}
    return found | ({ledger.id_of[about]} if about in ledger.id_of else set())


def _events(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[Event]:
    history = ledger.history
    record = None if original is None else ledger.published.get(original)
    if record is not None:
        yield record.timestamp_ms, f"published at {words.place(record.coordinates)}"
    entries = [entry for entry in history.wait_log if entry.wait_id in wait_ids]
    for entry in entries:
        yield entry.append_ms, _entry(entry)
    for one in (*history.dead_letters, *history.redelivered):
        if one.lineage is not None and (one.lineage.wait_id in wait_ids or one.lineage.original == original):
            yield one.timestamp_ms, _republished(one)
    for call in history.calls or ():
        if call.wait_id in wait_ids or (original and (call.topic, call.partition, call.offset) == original):
            yield call.started_ms, f"call {call.number} begins, attempt {call.delivery}"
            yield call.finished_ms, f"call {call.number} ends with status {call.status}"
    consumed = [place for place, wait_id in ledger.id_of.items() if wait_id in wait_ids]
    yield from _looks(ledger.looks, entries, consumed)


def _entry(entry: WaitEntry) -> str:
    text = f"{words.entry(entry)}{'' if entry.committed else ', ABORTED or not decided'}"
    if entry.registration is None:
        return f"{text}{f': {entry.unreadable}' if entry.unreadable else ''}"
    said = entry.registration
    source = f", consumed at {words.place(said.source)}" if said.source else ""
    return f"{text}: attempt {said.delivery} by {said.instance}{source}, expires at {words.time(said.expires_at_ms)}"


def _republished(one: Republished) -> str:
    named = None if one.lineage is None else one.lineage.registration
    text = f"{words.letter(one)}{'' if one.committed else ', ABORTED or not decided'}"
    decided = "" if one.time_ms is None else f", DLQ_TIME {words.time(one.time_ms)}"
    return f"{text} of {'nothing registered' if named is None else words.registration(named)}{decided}"


def _looks(looks: Sequence[Look], entries: Iterable[WaitEntry], consumed: Iterable[Coordinates]) -> Iterator[Event]:
    for place in consumed:
        shows = next((look for look in looks if look.committed.get(place[:2], 0) > place[2]), None)
        if shows is not None:
            yield shows.began_ms, f"a look shows {words.place(place)} committed ({shows.committed[place[:2]]})"
    sights = Sights(looks)
    for entry in entries:
        first = sights.first(entry)
        if first is not None:
            end = first.wait_ends[entry.partition]
            yield first.began_ms, f"a look shows the wait topic's end behind {words.registration(entry.place)} ({end})"


def _rows(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[str]:
    history = ledger.history
    for row in history.wait_rows or ():
        if row.wait_id in wait_ids:
            yield f"  at the end    row in wait of {words.registration(row.place)} {row.unreadable}".rstrip()
    for letter in history.dead_letter_rows or ():
        if letter.wait_id in wait_ids or (original is not None and letter.original == original):
            late = ", finished late" if letter.finished_late else ""
            yield f"  at the end    row in dead_letter of {words.place(letter.place)}: {letter.reason}{late}"
