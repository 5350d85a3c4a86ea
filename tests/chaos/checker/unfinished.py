"""P4: in the end nothing stands, in the wait topic or before it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation


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
