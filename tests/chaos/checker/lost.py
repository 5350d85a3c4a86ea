"""P1: whatever was consumed is done, dead-lettered, discarded, redelivered or standing."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DISCARDED, DONE
from wait_registry.demo.manifest import Coordinates


def lost(ledger: Ledger) -> Iterator[Violation]:
    """Find consumed records without an end; what nobody has consumed yet is `unfinished`'s business."""
    standing = {entry.registration.original for entry in ledger.standing if entry.registration is not None}
    on_its_way = {ledger.original_at(place) for place in ledger.redelivered if not ledger.is_consumed(place)}
    for place in ledger.published:
        ended = place in ledger.letters_of or place in standing or place in on_its_way or _is_done(ledger, place)
        if not ended and ledger.is_consumed(place):
            yield Violation(
                Kind.LOST, place, "consumed, and neither done nor dead-lettered nor discarded, nor does it stand"
            )
    for place in ledger.redelivered:
        known = place in ledger.registrations_of or ledger.id_of[place] in ledger.unregistered_letters
        if not known and ledger.is_consumed(place):
            why = f"its redelivery at {words.place(place)} was consumed, and neither registered nor dead-lettered"
            yield Violation(Kind.LOST, ledger.original_at(place), why)


def _is_done(ledger: Ledger, place: Coordinates) -> bool:
    if any(call.succeeded for call in ledger.calls_of.get(place, ())):
        return True
    # Without our downstream a tombstone's word is all there is.
    good = (DISCARDED,) if ledger.history.calls is not None else (DISCARDED, DONE)
    return any(
        later.outcome in good
        for entry in ledger.registrations_by_original.get(place, ())
        for later in ledger.entries_of[entry.wait_id, entry.partition]
    )
