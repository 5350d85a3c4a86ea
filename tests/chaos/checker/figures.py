"""Counts and delays that no rule judges, and whether there is evidence to judge by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, PROCESSORS, hits, overlaps
from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import EXPIRED, FAILED, MALFORMED, UNREGISTRABLE
from tests.chaos.history.history import History


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


# What makes processors wait, or partitions move.
_HOLDS_UP_PROCESSORS = (*PROCESSORS, *BROKER, "downstream", "input")
# What makes sweepers wait, or the view that they begin with.
_HOLDS_UP_EXPORTS = ("sweeper", "sink", "postgres", *BROKER)


def registration_delays_ms(ledger: Ledger) -> Iterator[int]:
    """Return for each record how long it stood in the input before it was registered, or dead-lettered instead.

    Only of what no fault of a processor, of the broker or of what processors call may have held up. What was there
    before the first processor counts from the first registration of all.
    """
    first_ms = min((entry.append_ms for entry in ledger.registrations), default=0)
    holding = [fault for fault in ledger.history.faults if hits(fault, *_HOLDS_UP_PROCESSORS)]
    for place, record in ledger.published.items():
        taken = [entry.append_ms for entry in ledger.registrations_of.get(place, ())]
        taken += [letter.timestamp_ms for letter in ledger.unregistered_letters.get(ledger.id_of[place], ())]
        from_ms, to_ms = max(record.timestamp_ms, first_ms), min(taken, default=0)
        if taken and not any(overlaps(fault, from_ms, to_ms, AFTERMATH_MS) for fault in holding):
            yield max(0, to_ms - from_ms)


def export_delays_ms(ledger: Ledger) -> Iterator[int]:
    """Return for each export how long its registration had been due.

    Only of what came before the first fault of sweepers, sinks or servers: starting a JVM takes as long as the machine
    likes.
    """
    skew_ms = 0 if ledger.history.told is None else ledger.history.told.skew_ms
    holding = [fault.began_ms for fault in ledger.history.faults if hits(fault, *_HOLDS_UP_EXPORTS)]
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is not None and entry.registration is not None and export.timestamp_ms < min(holding, default=10**15):
            yield max(0, export.timestamp_ms - entry.registration.expires_at_ms - skew_ms)


# Looks come a few times a second; on a busy machine one of them may take some seconds.
LOOKLESS_MS = 15_000
# The tables are looked at every two seconds; Postgres may be away for some of that.
FEWEST_VIEWS = 3


def void(history: History) -> str:
    """Return why nothing can be concluded from a run; empty when something can."""
    reasons = [
        f"no proof that the fault {fault.name} of {fault.target} happened"
        for fault in history.faults
        if not fault.happened
    ]
    if not history.published:
        reasons.append("no record was published")
    if not history.looks:
        reasons.append("nobody looked at the commits while it continued")
    elif (longest_ms := longest_without_look_ms(history)) > LOOKLESS_MS:
        reasons.append(f"nobody looked at the commits for {longest_ms} ms, while the broker was there")
    if history.views is not None and len(history.views) < FEWEST_VIEWS:
        reasons.append(f"the tables were seen {len(history.views)} times while it continued")
    return "; ".join(reasons)


def longest_without_look_ms(history: History) -> int:
    """Return for how long nobody looked, from the first registration to the last entry; a broker's faults apart."""
    seen = sorted((look.began_ms, look.ended_ms) for look in history.looks)
    entries = [entry.append_ms for entry in history.wait_log]
    if entries:
        seen = [(min(entries), min(entries)), *seen, (max(entries), max(entries))]
    away = [(one.began_ms, one.ended_ms + AFTERMATH_MS) for one in history.faults if hits(one, *BROKER)]
    longest_ms = 0
    for (_, from_ms), (to_ms, _) in pairwise(seen):
        explained = sum(max(0, min(to_ms, ended_ms) - max(from_ms, began_ms)) for began_ms, ended_ms in away)
        longest_ms = max(longest_ms, to_ms - from_ms - explained)
    return longest_ms
