"""P3: no handler starts without time left for all its attempts."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import AFTERMATH_MS, explains, hits, overlaps
from tests.chaos.checker.in_hand import instances_of
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.stillness import stood_still_ms
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import WaitEntry
from wait_registry.demo.calls import Call

# The downstream's clock and the broker's are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5


def late_call(ledger: Ledger) -> Iterator[Violation]:
    """Find calls so shortly before their registration expires that an attempt, or all of a first start, doesn't fit.

    A processor begins nothing unless a margin is left beyond its attempts. That margin isn't judged: it is for the way
    from its decision to the downstream, on a busy machine. A fault of the downstream, of the broker or of its own
    process explains more, and so does a machine that stood still. Which of several owners made a call isn't seen from
    outside: of the registrations before a call the one that expires last counts.
    """
    told = ledger.history.told
    if told is None:
        return
    for wait_id, calls in ledger.calls_of_id.items():
        registered = ledger.registrations_of_id.get(wait_id, ())
        for call in calls:
            before = [entry for entry in registered if entry.append_ms <= call.started_ms + ROUNDING_MS]
            if not before:
                continue  # which is `early_call`'s
            entry = max(before, key=_expires_at_ms)
            first = not any(entry.append_ms <= other.started_ms < call.started_ms for other in calls)
            needed_ms = told.attempt_ms * (told.tries if first else 1)
            left_ms = _expires_at_ms(entry) - call.started_ms
            if left_ms < needed_ms and not _explained(ledger, call, entry):
                began = f"call {call.number} began at {words.time(call.started_ms)}"
                why = f"{began}, {left_ms} ms before its {words.entry(entry)} expires, and {needed_ms} ms are needed"
                yield Violation(Kind.LATE_CALL, ledger.about(wait_id), why)


def _expires_at_ms(entry: WaitEntry) -> int:
    assert entry.registration is not None
    return entry.registration.expires_at_ms


def _explained(ledger: Ledger, call: Call, entry: WaitEntry) -> bool:
    from_ms, to_ms = entry.append_ms, call.started_ms
    owners = instances_of(ledger.registrations_of_id[entry.wait_id])
    return bool(stood_still_ms(ledger.looks, from_ms, to_ms)) or any(
        explains(fault, owners, from_ms, to_ms)
        or (hits(fault, "downstream") and overlaps(fault, from_ms, to_ms, AFTERMATH_MS))
        for fault in ledger.history.faults
    )
