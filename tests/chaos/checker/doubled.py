"""P4: a registration is exported once."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import Republished


def doubled(ledger: Ledger) -> Iterator[Violation]:
    """Find each further export of a registration, under read_committed."""
    first: dict[tuple[str, tuple[int, int] | None], Republished] = {}
    for export in sorted(ledger.exports, key=lambda export: export.timestamp_ms):
        lineage = export.lineage
        assert lineage is not None
        name = (lineage.wait_id, lineage.registration)
        if name in first:
            why = f"{words.letter(export)} exports again what {words.letter(first[name])} had exported"
            yield Violation(Kind.DOUBLED, lineage.original, why)
        first.setdefault(name, export)
