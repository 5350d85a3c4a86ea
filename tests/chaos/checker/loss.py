"""P1, P4: what a processor took has an end, and leaves nothing for the sweeper without a reason."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.sights import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DISCARDED, DONE, EXPORTS, Registration, Republished, WaitEntry
from wait_registry.demo.calls import ABORTED, Call
from wait_registry.demo.manifest import Coordinates


def lost(ledger: Ledger) -> Iterator[Violation]:
    """Find consumed records without an end; what nobody has consumed yet is `unfinished`'s business."""
    standing = {entry.registration.original for entry in ledger.standing if entry.registration is not None}
    on_its_way = {ledger.original_at(place) for place in ledger.redelivered if not ledger.is_consumed(place)}
    for place in ledger.published:
        ended = place in ledger.letters_of or place in standing or place in on_its_way or _is_done(ledger, place)
        if not ended and ledger.is_consumed(place):
            yield Violation(
                Kind.LOST, place, "consumed, and neither done nor dead-lettered nor discarded, nor does it stand"
            )
    for place in ledger.redelivered:
        known = place in ledger.registrations_of or ledger.id_of[place] in ledger.unregistered_letters
        if not known and ledger.is_consumed(place):
            why = f"its redelivery at {words.place(place)} was consumed, and neither registered nor dead-lettered"
            yield Violation(Kind.LOST, ledger.original_at(place), why)


def _is_done(ledger: Ledger, place: Coordinates) -> bool:
    if any(call.succeeded for call in ledger.calls_of.get(place, ())):
        return True
    # Without our downstream a tombstone's word is all there is.
    good = (DISCARDED,) if ledger.history.calls is not None else (DISCARDED, DONE)
    return any(
        later.outcome in good
        for entry in ledger.registrations_by_original.get(place, ())
        for later in ledger.entries_of[entry.wait_id, entry.partition]
    )


def unfinished(ledger: Ledger) -> Iterator[Violation]:
    """Find registrations that still stand, and records that nobody has consumed."""
    for entry in ledger.standing:
        assert entry.registration is not None
        expiry = words.time(entry.registration.expires_at_ms)
        why = f"{words.entry(entry)} still stands, it expires at {expiry}"
        yield Violation(Kind.UNFINISHED, entry.registration.original, why)
    for place, wait_id in ledger.id_of.items():
        if not ledger.is_consumed(place) and wait_id not in ledger.unregistered_letters:
            committed = ledger.committed_to.get(place[:2], 0)
            why = f"what stands at {words.place(place)} was never consumed: the commit is at {committed}"
            yield Violation(Kind.UNFINISHED, ledger.original_at(place), why)


# From the answer to the tombstone in the log it takes milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 5_000


def forgotten(ledger: Ledger) -> Iterator[Violation]:
    """Find expired registrations that a call had decided, with no fault near that their own process would have felt.

    A fault of another process explains nothing, nor does a rebalance: what runs continues, and writes its tombstone. An
    export that comes within `TOMBSTONE_MS` of the answer isn't judged: answer or tombstone may only have been late.
    """
    for export in ledger.exports:
        assert export.lineage is not None
        registered = ledger.registered_as(export)
        if registered is None:
            continue
        for call in ledger.calls_of_id.get(export.lineage.wait_id, ()):
            is_clear = abs(export.timestamp_ms - call.finished_ms) >= TOMBSTONE_MS
            if decides(ledger, call) and is_clear and _is_of(ledger, call, registered) and not _explained(ledger, call):
                yield Violation(Kind.FORGOTTEN, export.lineage.original, _why(export, registered, call))


def decides(ledger: Ledger, call: Call) -> bool:
    """Return whether a call was answered for good: with success, or with what isn't tried again."""
    told = ledger.history.told
    return call.succeeded or (told is not None and call.status not in (0, ABORTED, *told.retry_statuses))


def _explained(ledger: Ledger, call: Call) -> bool:
    # Which of several owners made a call isn't seen from outside.
    entries = ledger.registrations_of_id.get(call.wait_id or "", ())
    instances = {entry.registration.instance for entry in entries if entry.registration is not None}
    answered_ms = call.finished_ms
    return any(explains(fault, instances, answered_ms, answered_ms + TOMBSTONE_MS) for fault in ledger.history.faults)


def _is_of(ledger: Ledger, call: Call, registered: WaitEntry) -> bool:
    """Return whether a call was made for this registration, whose id neither came again meanwhile nor was resolved.

    What a processor had resolved before its export is `false_export`'s.
    """
    behind = ledger.entries_of[registered.wait_id, registered.partition]
    following = [entry for entry in behind if entry.offset > registered.offset]
    if following and following[0].is_tombstone and following[0].outcome not in EXPORTS:
        return False
    again_ms = (entry.append_ms for entry in following if entry.registration is not None)
    return registered.append_ms <= call.started_ms and call.finished_ms < min(again_ms, default=call.finished_ms + 1)


def _why(export: Republished, registered: WaitEntry, call: Call) -> str:
    return (
        f"{words.letter(export)} of the {words.entry(registered)}, whose call {call.number} had ended with status "
        f"{call.status} at {words.time(call.finished_ms)}; no fault near it explains why its tombstone did not come"
    )


def abandoned(ledger: Ledger) -> Iterator[Violation]:
    """Find exported registrations whose process had no fault, and neither ended them nor registered them again.

    The sweeper's net holds whatever a processor drops, so that an export alone shows nothing. A processor renews what
    waits for a slot, however long, and lets nothing expire: what comes after the expiry explains no more. Left out:
    what changed hands, or was registered again later (its partition had moved), what was answered for good (`forgotten`
    judges that) or otherwise shortly before or after its export, and what lived while the machine stalled.
    """
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is None or entry.registration is None:
            continue
        said = entry.registration
        registered = ledger.registrations_of_id[entry.wait_id]
        owners = {one.registration.instance for one in registered if one.registration is not None}
        moved = len(owners) > 1 or any(one.append_ms >= entry.append_ms and one is not entry for one in registered)
        if not moved and not _explained_abandoned(ledger, export, entry, said):
            why = f"{words.letter(export)} of the {words.entry(entry)}, which nobody ended or registered again"
            yield Violation(Kind.ABANDONED, said.original, f"{why}; its process {said.instance} had no fault meanwhile")


def _explained_abandoned(ledger: Ledger, export: Republished, entry: WaitEntry, said: Registration) -> bool:
    """Return whether an answer, a fault or a machine that stalled explains that it was abandoned.

    Its time begins when its processor made it, which may have died before the broker had it. What was called has a
    while longer to be ended than what never was.
    """
    told, exported_ms = ledger.history.told, export.timestamp_ms
    calls = ledger.calls_of_id.get(entry.wait_id, ())
    if any(decides(ledger, call) or abs(exported_ms - call.finished_ms) < TOMBSTONE_MS for call in calls):
        return True
    called = bool(calls) or ledger.history.calls is None
    from_ms = entry.append_ms if told is None else min(entry.append_ms, said.expires_at_ms - told.ttl_ms)
    to_ms = min(exported_ms, said.expires_at_ms + (TOMBSTONE_MS if called else 0))
    felt = any(explains(fault, [said.instance], from_ms, to_ms) for fault in ledger.history.faults)
    return felt or stood_still_ms(ledger.looks, from_ms, to_ms) > 0
