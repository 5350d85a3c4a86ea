"""What a processor left behind without a fault, for the sweeper to find."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.disturbance import explains
from tests.chaos.checker.forgotten import TOMBSTONE_MS, decides
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.stillness import stood_still_ms
from tests.chaos.history.entries import WaitEntry


def abandoned(ledger: Ledger) -> Iterator[WaitEntry]:
    """Return exported registrations whose process had no fault, and neither ended them nor registered them again.

    The sweeper's net holds whatever a processor drops, so that an export alone shows nothing. Left out: what changed
    hands, what was answered for good (`forgotten` judges that) or otherwise shortly before or after its export, and
    what lived while the machine stood still.
    """
    for export in ledger.exports:
        entry = ledger.registered_as(export)
        if entry is None:
            continue
        registered = ledger.registrations_of_id[entry.wait_id]
        owners = {one.registration.instance for one in registered if one.registration is not None}
        from_ms, to_ms = entry.append_ms, export.timestamp_ms
        felt = any(explains(fault, owners, from_ms, to_ms) for fault in ledger.history.faults)
        answered = any(
            decides(ledger, call) or abs(to_ms - call.finished_ms) < TOMBSTONE_MS
            for call in ledger.calls_of_id.get(entry.wait_id, ())
        )
        if len(owners) == 1 and not felt and not answered and not stood_still_ms(ledger.looks, from_ms, to_ms):
            yield entry
