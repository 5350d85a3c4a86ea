"""P1, P4: what a processor took has an end, and leaves nothing for the sweeper without a reason."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.ledger import Finding, Ledger
from tests.chaos.history.entries import EXPORTS, Registration, Republished, Tombstone, at, clock
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates
from wait_registry.records.tombstone import Outcome

# From the answer to the tombstone in the log it takes milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 5_000


def lost(ledger: Ledger) -> Iterator[Finding]:
    """Find consumed records without an end; `unfinished` judges what isn't consumed yet."""
    registered = {entry.original for entry in ledger.open}
    on_its_way = {ledger.original_at(place) for place in ledger.redelivered if not ledger.is_consumed(place)}
    for place in ledger.inputs:
        ended = place in ledger.letters_of or place in registered or place in on_its_way or _is_done(ledger, place)
        if not ended and ledger.is_consumed(place):
            why = "consumed, and neither done nor dead-lettered nor discarded nor registered"
            yield place, why
    for place in ledger.redelivered:
        wait_id = ledger.id_of[place]
        published = wait_id in ledger.unregistered_letters or wait_id in ledger.retries_of_id
        known = place in ledger.registrations_of or published
        settled = not ledger.eager and any(ledger.settles(call) for call in ledger.calls_of_id.get(wait_id, ()))
        if not (known or settled) and ledger.is_consumed(place):
            why = f"its redelivery at {at(place)} was consumed, and neither done nor dead-lettered nor registered"
            yield ledger.original_at(place), why


def _is_done(ledger: Ledger, place: Coordinates) -> bool:
    if any(ledger.settles(call) for call in ledger.calls_of.get(place, ())):
        return True
    # Without the downstream's calls, tombstones are the only evidence.
    good = (Outcome.DISCARDED,) if ledger.history.calls is not None else (Outcome.DISCARDED, Outcome.DONE)
    return any(
        later.outcome in good
        for entry in ledger.registrations_by_original.get(place, ())
        for later in ledger.entries_of[entry.wait_id, entry.partition]
    )


def unfinished(ledger: Ledger) -> Iterator[Finding]:
    """Find registrations that are still open, and records that were never consumed."""
    for entry in ledger.open:
        why = f"{entry} is still open, it expires at {clock(entry.expires_at_ms)}"
        yield entry.original, why
    for place, wait_id in ledger.id_of.items():
        settled = wait_id in ledger.unregistered_letters or wait_id in ledger.retries_of_id
        if not ledger.is_consumed(place) and not settled:
            committed = ledger.committed_to.get(place[:2], 0)
            why = f"the record at {at(place)} was never consumed: the commit is at {committed}"
            yield ledger.original_at(place), why


def forgotten(ledger: Ledger) -> Iterator[Finding]:
    """Find expired registrations that a call had decided, with no fault near that their own process would have felt.

    A fault of another process explains nothing, nor does a rebalance: a running call continues, and writes its
    tombstone. An export that comes within `TOMBSTONE_MS` of the answer isn't judged: answer or tombstone may only have
    been late.
    """
    for export in ledger.exports:
        registered = ledger.registered_as(export)
        for call in ledger.calls_of_id.get(export.wait_id, ()) if registered is not None else ():
            is_clear = abs(export.append_ms - call.finished_ms) >= TOMBSTONE_MS
            if not (registered and is_clear and ledger.is_final(call) and _is_of(ledger, call, registered)):
                continue
            # The log doesn't show which of several owners made a call.
            owners, to_ms = ledger.instances_of(call.wait_id), call.finished_ms + TOMBSTONE_MS
            if not any(explains(fault, owners, call.finished_ms, to_ms) for fault in ledger.history.faults):
                ended = f"whose call {call.number} had ended with status {call.status} at {clock(call.finished_ms)}"
                why = f"{export} of the {registered}, {ended}; no fault near it explains why its tombstone is missing"
                yield export.original, why


def _is_of(ledger: Ledger, call: Call, registered: Registration) -> bool:
    """Return whether a call was made for this registration, whose ID neither came again meanwhile nor was resolved.

    `false_export` judges what a processor had resolved before its export.
    """
    behind = ledger.entries_of[registered.wait_id, registered.partition]
    following = [entry for entry in behind if entry.offset > registered.offset]
    if following and isinstance(following[0], Tombstone) and following[0].outcome not in EXPORTS:
        return False
    again_ms = (entry.append_ms for entry in following if isinstance(entry, Registration))
    return registered.append_ms <= call.started_ms and call.finished_ms < min(again_ms, default=call.finished_ms + 1)


def abandoned(ledger: Ledger) -> Iterator[Finding]:
    """Find exported registrations whose process had no fault, and neither ended them nor registered them again.

    Not judged are registrations that changed hands, or were registered again later (their partition had moved), those
    that were answered for good (`forgotten` judges them) or otherwise shortly before or after their export, and those
    that lived while the machine stalled.
    """
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is None:
            continue
        later = any(
            one.append_ms >= entry.append_ms and one is not entry for one in ledger.registrations_of_id[entry.wait_id]
        )
        moved = later or len(ledger.instances_of(entry.wait_id)) > 1
        if not moved and not _explained(ledger, export, entry):
            why = f"{export} of the {entry}, which no process ended or registered again"
            yield entry.original, f"{why}; its process {entry.instance} had no fault meanwhile"


def _explained(ledger: Ledger, export: Republished, entry: Registration) -> bool:
    """Return whether an answer, a fault or a machine that stalled explains that it was abandoned.

    Its time begins when its processor made it, which may have died before the broker had it. A called record has a
    while longer to be ended than one that was never called.
    """
    calls = ledger.calls_of_id.get(entry.wait_id, ())
    if any(ledger.is_final(call) or abs(export.append_ms - call.finished_ms) < TOMBSTONE_MS for call in calls):
        return True
    called = bool(calls) or ledger.history.calls is None
    from_ms = min(entry.append_ms, entry.expires_at_ms - ledger.ttl_ms)
    to_ms = min(export.append_ms, entry.expires_at_ms + (TOMBSTONE_MS if called else 0))
    felt = any(explains(fault, [entry.instance], from_ms, to_ms) for fault in ledger.history.faults)
    return felt or ledger.stalled_ms(from_ms, to_ms) > 0
