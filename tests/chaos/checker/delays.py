"""How long records waited for their registration, and expired registrations for their export, while all was well."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, PROCESSORS, hits, overlaps
from tests.chaos.checker.ledger import Ledger

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
