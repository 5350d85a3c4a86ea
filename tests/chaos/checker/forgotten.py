"""P4: what was done and didn't die with its process is not exported."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import EXPORTS, Republished, WaitEntry
from waitreg.calls import Call

# From the answer to the tombstone in the log it takes milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 5_000
# What follows from a fault that is over: clients wait up to this long before they connect again, partitions are on
# their way to another member.
AFTERMATH_MS = 10_000


def forgotten(ledger: Ledger) -> Iterator[Violation]:
    """Find expired registrations whose call had succeeded, with no fault near that a processor would have felt."""
    faults = [fault for fault in ledger.history.faults if hits(fault, "processor", "visitor", "group", "broker")]
    for export in ledger.exports:
        assert export.lineage is not None
        registered = ledger.entry_at.get(export.lineage.registration or (-1, -1))
        if registered is None or registered.registration is None:
            continue
        for call in ledger.calls_of_id.get(export.lineage.wait_id, ()):
            answered_ms = call.finished_ms
            explained = any(overlaps(fault, answered_ms, answered_ms + TOMBSTONE_MS, AFTERMATH_MS) for fault in faults)
            if call.succeeded and not explained and _is_of(ledger, call, registered):
                yield Violation(Kind.FORGOTTEN, export.lineage.original, _why(export, registered, call))


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
        f"{words.letter(export)} of the {words.entry(registered)}, whose call {call.number} had succeeded at "
        f"{words.time(call.finished_ms)}; no fault near it explains why its tombstone did not come"
    )
