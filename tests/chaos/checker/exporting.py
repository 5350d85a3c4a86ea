"""P3, P4: what the sweeper exports is due, was not resolved, and goes once, in one transaction, where it belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.chaos.checker.disturbance import earlier, pauses_exports
from tests.chaos.checker.ledger import ROUNDING_MS, Finding, Ledger
from tests.chaos.history.entries import EXPORTS, Place, Registration, Republished, Tombstone, clock, wait_at
from wait_registry.records.tombstone import Outcome
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.processor import RedeliverTo
from waitreg.load.manifest import Coordinates

# From the log's end, as the sweeper learns it, to DLQ_TIME it reads what is left of the tail and then the rows of one
# chunk: milliseconds; more on a machine whose few cores are all busy. A tail that was never read, or only once,
# misses what is older than that by far: between outcome and expiry lies a time to live.
READING_MS = 2000
# From DLQ_TIME to the broker: the rows of the chunk are encoded, topics are looked up, a transaction of five seconds at
# most. So DLQ_TIME is believed, but no further than that.
WRITING_MS = 15_000


class Pairs(NamedTuple):
    """The exports, each with the tombstone of its transaction if there is one, and the tombstones without export.

    If an export was made twice and there is one tombstone, both have that one: it is doubled, not unpaired.
    """

    tombstone_of: Mapping[Coordinates, Tombstone | None]
    alone: Sequence[Tombstone]


def pair_exports(ledger: Ledger) -> Pairs:
    """Pair the exports of each ID and partition with the sweeper's tombstones behind their registrations."""
    by_id: dict[tuple[str, int], list[tuple[Place, Republished]]] = {}
    tombstone_of: dict[Coordinates, Tombstone | None] = {}
    for export in ledger.exports:
        if export.registration is None:
            tombstone_of[export.place] = None
        else:
            by_id.setdefault((export.wait_id, export.registration[0]), []).append((export.registration, export))
    alone = []
    for name in {*by_id, *ledger.entries_of}:
        entries = (entry for entry in ledger.entries_of.get(name, ()) if isinstance(entry, Tombstone))
        tombstones = [entry for entry in entries if entry.outcome in EXPORTS]
        taken = _pair(by_id.get(name, ()), tombstones)
        tombstone_of |= taken
        used = {entry.place for entry in taken.values() if entry is not None}
        alone += [entry for entry in tombstones if entry.place not in used]
    return Pairs(tombstone_of, alone)


def _pair(
    exports: Iterable[tuple[Place, Republished]], tombstones: Sequence[Tombstone]
) -> Mapping[Coordinates, Tombstone | None]:
    taken: dict[Coordinates, Tombstone | None] = {}
    of_registration: dict[Place, Tombstone] = {}
    free = list(tombstones)
    for place, export in sorted(exports, key=lambda pair: (pair[0][1], pair[1].append_ms)):
        own = next((entry for entry in free if entry.offset > place[1] and entry.outcome == export.outcome), None)
        if own is not None:
            free.remove(own)
            of_registration[place] = own
        taken[export.place] = own or of_registration.get(place)
    return taken


def false_export(ledger: Ledger) -> Iterator[Finding]:
    """Find exports before their time, of what was no registration, and of what a later entry had resolved.

    When the tail was read can't be seen from outside. DLQ_TIME is taken after it, so an entry that the broker appended
    well before DLQ_TIME must have been in it. A sweeper that stalled in between (frozen itself, or Postgres or the
    broker unavailable) may have read the tail as early as that began. A redelivery has no time of its own, so the
    broker's counts, which is later by its way there. That time bounds DLQ_TIME too: whatever DLQ_TIME says, an export
    before it is due (its expiry plus the skew allowance) is false, and an entry long before the export was in the tail.
    """
    pauses = [fault for fault in ledger.history.faults if pauses_exports(fault)]
    tombstone_of = pair_exports(ledger).tombstone_of
    for export in ledger.exports:
        written_ms = export.append_ms
        decided_ms = written_ms if export.time_ms is None else export.time_ms
        read_ms = max(earlier(decided_ms, READING_MS, pauses), earlier(written_ms, WRITING_MS + READING_MS, pauses))
        if why := _why_false(ledger, export, tombstone_of[export.place], decided_ms, read_ms):
            yield export.original, f"{export}: {why}"


def _why_false(ledger: Ledger, export: Republished, own: Tombstone | None, decided_ms: int, read_ms: int) -> str:
    if export.registration is None:
        return "it names no registration"
    registered = ledger.registered_as(export)
    if registered is None:
        return f"{wait_at(export.registration)} is no registration of {export.wait_id}"
    due_ms = registered.expires_at_ms + max(0, ledger.skew_ms - ROUNDING_MS)
    if (at_ms := min(decided_ms, export.append_ms)) < due_ms:
        return f"at {clock(at_ms)}, it expires at {clock(registered.expires_at_ms)} and is due at {clock(due_ms)}"
    for entry in ledger.entries_of[export.wait_id, registered.partition]:
        between = registered.offset < entry.offset and (own is None or entry.offset < own.offset)
        if between and entry.append_ms < read_ms:
            read = f"the tail was read between {clock(read_ms)} and {clock(decided_ms)}"
            return f"{entry} had come after its registration, and {read}"
    return ""


def doubled(ledger: Ledger) -> Iterator[Finding]:
    """Find each further export of a registration, under read_committed."""
    first: dict[tuple[str, Place | None], Republished] = {}
    for export in sorted(ledger.exports, key=lambda export: export.append_ms):
        before = first.setdefault((export.wait_id, export.registration), export)
        if before is not export:
            yield export.original, f"{export} exports again what {before} had exported"


def unpaired(ledger: Ledger) -> Iterator[Finding]:
    """Find exports without their tombstone behind their registration, and such tombstones without export."""
    pairs = pair_exports(ledger)
    for export in ledger.exports:
        if pairs.tombstone_of[export.place] is None:
            where = export.registration
            behind = "no registration that it names" if where is None else f"registration {wait_at(where)}"
            why = f"{export}: no tombstone {export.outcome} behind {behind}"
            yield export.original, why
    for entry in pairs.alone:
        yield ledger.about(entry.wait_id), f"{entry} has no export of its own"


def misrouted(ledger: Ledger) -> Iterator[Finding]:
    """Find exports that their registration's policy, deliveries or topic didn't ask for.

    What may be too large for the redelivery topic may be dead-lettered instead, so from half of the largest wait record
    on that isn't judged.
    """
    for export in ledger.exports:
        registered = ledger.registered_as(export)
        # `false_export` judges exports without one.
        if registered is not None and (why := _why_misrouted(ledger, export, registered)):
            yield registered.original, f"{export} of the {registered}: {why}"


def _why_misrouted(ledger: Ledger, export: Republished, said: Registration) -> str:
    again = said.expiry_policy == "redeliver" and said.delivery < said.max_deliveries
    asked = f"{said.expiry_policy}, delivery {said.delivery} of at most {said.max_deliveries}"
    record = ledger.inputs.get(said.original)
    is_large = record is not None and 2 * record.registered_bytes > ledger.registration_bytes
    if export.outcome == Outcome.REDELIVERED:
        to_origin = ledger.history.settings.processor.redeliver_to is RedeliverTo.ORIGIN
        topic = said.original[0] if to_origin else redelivery_topic(said.original[0], said.group)
        if not again:
            return f"redelivered, and it says {asked}"
    else:
        topic = said.dead_letter_topic
        if again and not is_large:
            return f"dead-lettered, and it says {asked}"
    return "" if export.topic == topic else f"it belongs into {topic}"
