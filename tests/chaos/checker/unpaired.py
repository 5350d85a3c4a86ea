"""P4: an export and its tombstone are one transaction: where one is seen the other is."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.exports import exported
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation


def unpaired(ledger: Ledger) -> Iterator[Violation]:
    """Find exports without their tombstone behind their registration, and such tombstones without export."""
    pairs = exported(ledger)
    for export in ledger.exports:
        if pairs.tombstone_of[export.place] is None:
            assert export.lineage is not None
            where = export.lineage.registration
            behind = "no registration that it names" if where is None else f"registration {words.registration(where)}"
            why = f"{words.letter(export)}: no tombstone {export.outcome} behind {behind}"
            yield Violation(Kind.UNPAIRED, export.lineage.original, why)
    for entry in pairs.alone:
        yield Violation(Kind.UNPAIRED, ledger.about(entry.wait_id), f"{words.entry(entry)} has no export of its own")
