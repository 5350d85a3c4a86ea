"""Counts of what is no violation: what at-least-once allows, and how much was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.chaos.checker.delays import export_delays_ms, registration_delays_ms
from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import EXPIRED, FAILED, MALFORMED, UNREGISTRABLE


def figures(ledger: Ledger) -> Mapping[str, int]:
    """Count records by their ends (several ends count each), repetitions, evidence, and what no rule judges yet."""
    history = ledger.history
    succeeded = {place for place, calls in ledger.calls_of.items() if any(call.succeeded for call in calls)}
    done = succeeded & ledger.published.keys()
    by_reason = {
        reason: {letter.lineage.original for letter in ledger.letters if letter.lineage and letter.reason == reason}
        for reason in (FAILED, EXPIRED, UNREGISTRABLE, MALFORMED)
    }
    outcomes = Counter(entry.outcome for entry in ledger.log if entry.is_tombstone)
    times_registered = Counter(entry.wait_id for entry in ledger.registrations)
    return {
        "records": len(ledger.published),
        "done": len(done),
        "dead_lettered": len(ledger.letters_of.keys() & ledger.published.keys()),
        **{reason: len(places) for reason, places in by_reason.items()},
        "redelivered": len(ledger.redelivered),
        "discarded": outcomes["discarded"],
        "registrations": len(ledger.registrations),
        "registered_again": sum(count - 1 for count in times_registered.values()),
        "handled_again": sum(
            sum(call.succeeded for call in ledger.calls_of.get(place, ())) > 1 for place in ledger.published
        ),
        "done_and_expired": len(done & by_reason[EXPIRED]),
        "failed_and_expired": len(by_reason[FAILED] & by_reason[EXPIRED]),
        "aborted": sum(not entry.committed for entry in history.wait_log),
        "calls": len(history.calls or ()),
        "looks": len(history.looks),
        "views": len(history.views or ()),
        "rows_seen_standing": sum(len(view.tables.wait) for view in history.views or ()),
        "faults": len(history.faults),
        "slowest_registration_ms": max(registration_delays_ms(ledger), default=0),
        "slowest_export_ms": max(export_delays_ms(ledger), default=0),
    }
