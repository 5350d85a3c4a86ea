"""P1: a processor that nothing befalls leaves nothing behind for the sweeper to find."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.forgotten import TOMBSTONE_MS, decides
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.stillness import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import Registration, Republished, WaitEntry


def abandoned(ledger: Ledger) -> Iterator[Violation]:
    """Find exported registrations whose process had no fault, and neither ended them nor registered them again.

    The sweeper's net holds whatever a processor drops, so that an export alone shows nothing. A processor renews what
    waits for a slot, however long, and lets nothing expire: what comes after the expiry explains no more. Left out:
    what changed hands, or was registered again later (its partition had moved), what was answered for good (`forgotten`
    judges that) or otherwise shortly before or after its export, and what lived while the machine stood still.
    """
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is None or entry.registration is None:
            continue
        said = entry.registration
        registered = ledger.registrations_of_id[entry.wait_id]
        owners = {one.registration.instance for one in registered if one.registration is not None}
        moved = len(owners) > 1 or any(one.append_ms >= entry.append_ms and one is not entry for one in registered)
        if not moved and not _explained(ledger, export, entry, said):
            why = f"{words.letter(export)} of the {words.entry(entry)}, which nobody ended or registered again"
            yield Violation(Kind.ABANDONED, said.original, f"{why}; its process {said.instance} had no fault meanwhile")


def _explained(ledger: Ledger, export: Republished, entry: WaitEntry, said: Registration) -> bool:
    """Return whether an answer, a fault or a machine that stood still explains that it was left behind.

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
