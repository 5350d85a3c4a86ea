"""P1: the same record has the same wait id, whoever registers it, and no other record has it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation


def misnamed(ledger: Ledger) -> Iterator[Violation]:
    """Find registrations, dead letters in their place, and calls under another id than cluster, group, place derive."""
    for entry in ledger.registrations:
        assert entry.registration is not None
        wanted = ledger.id_of.get(entry.registration.consumed)
        if wanted is not None and wanted != entry.wait_id:
            why = f"{words.entry(entry)} has the id {entry.wait_id}, the record's is {wanted}"
            yield Violation(Kind.MISNAMED, entry.registration.original, why)
    known = {wait_id: ledger.original_at(place) for place, wait_id in ledger.id_of.items()}
    for wait_id, letters in ledger.unregistered_letters.items():
        for letter in letters:
            assert letter.lineage is not None
            if known.get(wait_id) != letter.lineage.original and letter.lineage.original in ledger.published:
                why = f"{words.letter(letter)} has the id {wait_id}, which is not its record's"
                yield Violation(Kind.MISNAMED, letter.lineage.original, why)
    for place, calls in ledger.calls_of.items():
        for call in calls:
            # A redelivered record is called with the place of its first delivery, and an id of its own.
            if place in ledger.published and known.get(call.wait_id or "") != place:
                why = f"call {call.number} at {words.time(call.started_ms)} has the key {call.wait_id}, another's"
                yield Violation(Kind.MISNAMED, place, why)
