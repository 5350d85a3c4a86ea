"""The whole story of one record: everything that is known of it, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.disturbance import overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import Registration, Republished, TopicRecord, WaitEntry, at, clock, wait_at
from wait_registry.demo.manifest import Coordinates

Event = tuple[int, str]
AROUND_MS = 3_000


def story(ledger: Ledger, about: Coordinates | str) -> str:
    """Return what happened to a record, or to a wait ID, with the faults around it.

    Of the polls it has the first ones that show a commit behind the record, or one of its entries.
    """
    original = about if isinstance(about, tuple) else ledger.original_of.get(about)
    wait_ids = {about} if isinstance(about, str) else _wait_ids(ledger, about)
    title = about if isinstance(about, str) else at(about)
    events = sorted(_events(ledger, original, wait_ids))
    if not events:
        return f"{title}: nothing is known of it"
    for fault in ledger.history.faults:
        if overlaps(fault, events[0][0] - AROUND_MS, events[-1][0] + AROUND_MS):
            name, proof = f"  fault {fault.name} of {fault.target}", fault.happened or "NO PROOF"
            events += [(fault.began_ms, f"{name} begins: {proof}"), (fault.ended_ms, f"{name} is over")]
    lines = [f"  {clock(moment_ms)}  {text}" for moment_ms, text in sorted(events)]
    rows = [f"  at the end    {row}" for row in _rows(ledger, original, wait_ids)]
    return "\n".join([f"{title}, wait ID {', '.join(sorted(wait_ids)) or 'unknown'}", *lines, *rows])


def _wait_ids(ledger: Ledger, about: Coordinates) -> set[str]:
    found = {entry.wait_id for entry in ledger.registrations_by_original.get(about, ())}
    found |= {letter.wait_id for letter in ledger.letters_of.get(about, ())}
    return found | ({ledger.id_of[about]} if about in ledger.id_of else set())


def _events(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[Event]:
    history = ledger.history
    if original is not None and original in ledger.inputs:
        yield ledger.inputs[original].timestamp_ms, f"published at {at(original)}"
    for entry in history.wait_log:
        if entry.wait_id in wait_ids:
            yield entry.append_ms, _entry(entry)
            if (poll := ledger.first_poll(entry)) is not None:
                end = poll.wait_ends[entry.partition]
                yield poll.began_ms, f"a poll shows the wait topic's end behind {wait_at(entry.place)} ({end})"
    for one in (*history.dead_letters, *history.redelivered):
        if isinstance(one, Republished) and (one.wait_id in wait_ids or one.original == original):
            named = "nothing registered" if one.registration is None else wait_at(one.registration)
            decided = "" if one.time_ms is None else f", DLQ_TIME {clock(one.time_ms)}"
            yield one.append_ms, f"{one}{_doubt(one)} of {named}{decided}"
    for call in history.calls or ():
        if call.wait_id in wait_ids or (original and call.coordinates == original):
            yield call.started_ms, f"call {call.number} begins, delivery {call.delivery}"
            yield call.finished_ms, f"call {call.number} ends with status {call.status}"
    for place in (place for place, wait_id in ledger.id_of.items() if wait_id in wait_ids):
        shows = next((poll for poll in ledger.polls if poll.committed.get(place[:2], 0) > place[2]), None)
        if shows is not None:
            yield shows.began_ms, f"a poll shows {at(place)} committed ({shows.committed[place[:2]]})"


def _entry(entry: WaitEntry) -> str:
    if not isinstance(entry, Registration):
        return f"{entry}{_doubt(entry)}"
    source = f", consumed at {at(entry.source)}" if entry.source else ""
    made = f"delivery {entry.delivery} by {entry.instance}{source}"
    return f"{entry}{_doubt(entry)}: {made}, expires at {clock(entry.expires_at_ms)}"


def _doubt(record: WaitEntry | TopicRecord) -> str:
    return "" if record.committed else ", ABORTED or not decided"


def _rows(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[str]:
    tables = ledger.history.tables
    for row in tables.wait if tables is not None else ():
        if row.wait_id in wait_ids:
            yield f"row in wait: {row.registration or row.unreadable}"
    for letter, finished_late, _ in tables.dead_letter if tables is not None else ():
        if isinstance(letter, Republished) and (letter.wait_id in wait_ids or letter.original == original):
            yield f"row in dead_letter: {letter}{', finished late' if finished_late else ''}"
