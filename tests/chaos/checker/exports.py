"""Which tombstone belongs to which export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import EXPORTS, Republished, WaitEntry
from wait_registry.demo.manifest import Coordinates


@dataclass(frozen=True, slots=True)
class Exported:
    """The exports, each with the tombstone of its transaction if there is one, and the tombstones without export.

    Of an export made twice, of which there is one tombstone, both have that one: it is doubled, not unpaired.
    """

    tombstone_of: Mapping[Coordinates, WaitEntry | None]
    alone: Sequence[WaitEntry]


def exported(ledger: Ledger) -> Exported:
    """Pair the exports of each id and partition with the sweeper's tombstones behind their registrations."""
    by_id: dict[tuple[str, int], list[Republished]] = {}
    tombstone_of: dict[Coordinates, WaitEntry | None] = {}
    for export in ledger.exports:
        lineage = export.lineage
        assert lineage is not None
        if lineage.registration is None:
            tombstone_of[export.place] = None
        else:
            by_id.setdefault((lineage.wait_id, lineage.registration[0]), []).append(export)
    alone = []
    for name in {*by_id, *ledger.entries_of}:
        tombstones = [entry for entry in ledger.entries_of.get(name, ()) if entry.outcome in EXPORTS]
        taken = _pair(by_id.get(name, ()), tombstones)
        tombstone_of |= taken
        used = {entry.place for entry in taken.values() if entry is not None}
        alone += [entry for entry in tombstones if entry.place not in used]
    return Exported(tombstone_of, alone)


def _pair(exports: Iterable[Republished], tombstones: Sequence[WaitEntry]) -> Mapping[Coordinates, WaitEntry | None]:
    taken: dict[Coordinates, WaitEntry | None] = {}
    of_registration: dict[tuple[int, int], WaitEntry] = {}
    free = list(tombstones)
    for export in sorted(exports, key=_order):
        assert export.lineage is not None and export.lineage.registration is not None
        place, outcome = export.lineage.registration, export.outcome
        own = next((entry for entry in free if entry.offset > place[1] and entry.outcome == outcome), None)
        if own is not None:
            free.remove(own)
            of_registration[place] = own
        taken[export.place] = own or of_registration.get(place)
    return taken


def _order(export: Republished) -> tuple[int, int]:
    assert export.lineage is not None and export.lineage.registration is not None
    return (export.lineage.registration[1], export.timestamp_ms)
