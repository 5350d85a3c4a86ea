"""The whole story of one record: everything that is known of it, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.disturbance import overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import Registration, Republished, TopicRecord, WaitEntry, at, clock, wait_at
from waitreg.load.manifest import Coordinates

AROUND_MS = 3_000


def story(ledger: Ledger, about: Coordinates | str) -> str:
    """Return what happened to a record, or to a wait ID, with the faults around it."""
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
    return "\n".join([f"{title}, wait ID {', '.join(sorted(wait_ids)) or 'unknown'}", *lines])


def _wait_ids(ledger: Ledger, about: Coordinates) -> set[str]:
    found = {entry.wait_id for entry in ledger.registrations_by_original.get(about, ())}
    found |= {letter.wait_id for letter in ledger.letters_of.get(about, ())}
    return found | ({ledger.id_of[about]} if about in ledger.id_of else set())


def _events(ledger: Ledger, original: Coordinates | None, wait_ids: set[str]) -> Iterator[tuple[int, str]]:
    history = ledger.history
    if original is not None and original in ledger.inputs:
        yield ledger.inputs[original].timestamp_ms, f"published at {at(original)}"
    for entry in history.wait_log:
        if entry.wait_id in wait_ids:
            more = ""
            if isinstance(entry, Registration):
                source = f", consumed at {at(entry.source)}" if entry.source else ""
                more = (
                    f": delivery {entry.delivery} by {entry.instance}{source}, expires at {clock(entry.expires_at_ms)}"
                )
            yield entry.append_ms, f"{entry}{_doubt(entry)}{more}"
    for one in (*history.dead_letters, *history.redelivered):
        if isinstance(one, Republished) and (one.wait_id in wait_ids or one.original == original):
            named = "nothing registered" if one.registration is None else wait_at(one.registration)
            decided = "" if one.time_ms is None else f", DLQ_TIME {clock(one.time_ms)}"
            yield one.append_ms, f"{one}{_doubt(one)} of {named}{decided}"
    for call in history.calls or ():
        if call.wait_id in wait_ids or (original and call.coordinates == original):
            yield call.started_ms, f"call {call.number} begins, delivery {call.delivery}"
            yield call.finished_ms, f"call {call.number} ends with status {call.status}"


def _doubt(record: WaitEntry | TopicRecord) -> str:
    return "" if record.committed else ", ABORTED or not decided"
