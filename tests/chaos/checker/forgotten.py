"""P4: what was done, or failed for good, and didn't die with its process is not exported."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import EXPORTS, Republished, WaitEntry
from wait_registry.demo.calls import ABORTED, Call

# From the answer to the tombstone in the log it takes milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 5_000


def forgotten(ledger: Ledger) -> Iterator[Violation]:
    """Find expired registrations that a call had decided, with no fault near that their own process would have felt.

    A fault of another process explains nothing, nor does a rebalance: what runs goes on, and writes its tombstone. An
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
