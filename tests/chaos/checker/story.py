"""The whole story of one record: everything that is known of it, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import Sights
from tests.chaos.history.entries import Republished, WaitEntry
from wait_registry.demo.manifest import Coordinates

Event = tuple[int, str]
AROUND_MS = 3_000


def story(ledger: Ledger, about: Coordinates | str) -> str:
    """Tell what happened to a record, or to what has a wait id; faults around it included.

    Of the looks those are told that show a commit past it, or one of its entries, for the first time.
    """
    original = about if isinstance(about, tuple) else ledger.original_of.get(about)
    wait_ids = {about} if isinstance(about, str) else _wait_ids(ledger, about)
    title = about if isinstance(about, str) else words.place(about)
    events = sorted(_events(ledger, original, wait_ids))
    if not events:
        return f"{title}: nothing is known of it"
    for fault in ledger.history.faults:
        if overlaps(fault, events[0][0] - AROUND_MS, events[-1][0] + AROUND_MS):
            name, proof = f"  fault {fault.name} of {fault.target}", fault.happened or "NO PROOF"
            events += [(fault.began_ms, f"{name} begins: {proof}"), (fault.ended_ms, f"{name} is over")]
    told = [f"  {words.time(moment_ms)}  {text}" for moment_ms, text in sorted(events)]
    rows = [f"  at the end    {row}" for row in _rows(ledger, original, wait_ids)]
    return "\n".join([f"{title}, wait id {', '.join(sorted(wait_ids)) or 'unknown'}", *told, *rows])


def _wait_ids(ledger: Ledger, about: Coordinates) -> set[str]:
    found = {entry.wait_id for entry in ledger.registrations_by_original.get(about, ())}
    found |= {letter.lineage.wait_id for letter in ledger.letters_of.get(about, ()) if letter.lineage is not None}
    return found | ({ledger.id_of[about]} if about in ledger.id_of else set())


def _events(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[Event]:
    history, sights = ledger.history, Sights(ledger.looks)
    if original is not None and (record := ledger.published.get(original)) is not None:
        yield record.timestamp_ms, f"published at {words.place(record.coordinates)}"
    for entry in history.wait_log:
        if entry.wait_id in wait_ids:
            yield entry.append_ms, _entry(entry)
            if (look := sights.first(entry)) is not None:
                where = f"{words.registration(entry.place)} ({look.wait_ends[entry.partition]})"
                yield look.began_ms, f"a look shows the wait topic's end behind {where}"
    for one in (*history.dead_letters, *history.redelivered):
        if one.lineage is not None and (one.lineage.wait_id in wait_ids or one.lineage.original == original):
            yield one.timestamp_ms, _republished(one)
    for call in history.calls or ():
        if call.wait_id in wait_ids or (original and (call.topic, call.partition, call.offset) == original):
            yield call.started_ms, f"call {call.number} begins, delivery {call.delivery}"
            yield call.finished_ms, f"call {call.number} ends with status {call.status}"
    for place in (place for place, wait_id in ledger.id_of.items() if wait_id in wait_ids):
        shows = next((look for look in ledger.looks if look.committed.get(place[:2], 0) > place[2]), None)
        if shows is not None:
            yield shows.began_ms, f"a look shows {words.place(place)} committed ({shows.committed[place[:2]]})"


def _entry(entry: WaitEntry) -> str:
    text = f"{words.entry(entry)}{'' if entry.committed else ', ABORTED or not decided'}"
    if entry.registration is None:
        return f"{text}{f': {entry.unreadable}' if entry.unreadable else ''}"
    said = entry.registration
    source = f", consumed at {words.place(said.source)}" if said.source else ""
    return f"{text}: delivery {said.delivery} by {said.instance}{source}, expires at {words.time(said.expires_at_ms)}"


def _republished(one: Republished) -> str:
    named = None if one.lineage is None else one.lineage.registration
    text = f"{words.letter(one)}{'' if one.committed else ', ABORTED or not decided'}"
    decided = "" if one.time_ms is None else f", DLQ_TIME {words.time(one.time_ms)}"
    return f"{text} of {'nothing registered' if named is None else words.registration(named)}{decided}"


def _rows(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[str]:
    for row in ledger.history.wait_rows or ():
        if row.wait_id in wait_ids:
            yield f"row in wait of {words.registration(row.place)} {row.unreadable}".rstrip()
    for letter in ledger.history.dead_letter_rows or ():
        if letter.wait_id in wait_ids or (original is not None and letter.original == original):
            late = ", finished late" if letter.finished_late else ""
            yield f"row in dead_letter of {words.place(letter.place)}: {letter.reason}{late}"
