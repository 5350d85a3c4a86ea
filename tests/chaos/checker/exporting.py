"""P3, P4: what the sweeper exports is due, was not resolved, and goes once, in one transaction, where it belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker import words
from tests.chaos.checker.disturbance import earlier, pauses_exports
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import EXPORTS, REDELIVERED, Registration, Republished, WaitEntry
from tests.chaos.history.history import redelivery_topics
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


# From the log's end, as the sweeper learns it, to DLQ_TIME it reads what is left of the tail and then the rows of one
# chunk: milliseconds; on a machine whose few cores are wanted by all, more. A tail that was never read, or only once,
# misses what is older than that by far: between outcome and expiry lies a time to live.
READING_MS = 2000
# From DLQ_TIME to the broker: the rows of the chunk are encoded, topics are looked up, a transaction of five seconds at
# most. So DLQ_TIME is believed, but no further than that.
WRITING_MS = 15_000
# Postgres' clock, by which a row falls due, DLQ_TIME's and the broker's are one host's; each cuts its time to
# milliseconds.
ROUNDING_MS = 5


def false_export(ledger: Ledger) -> Iterator[Violation]:
    """Find exports before their time, of what was no registration, and of what something had come after.

    When the tail was read isn't seen from outside. DLQ_TIME is taken after it; so an entry that the broker appended
    well before DLQ_TIME must have been in it. Whoever stalled in between (the sweeper frozen, Postgres or the
    broker away) may have read the tail as early as that began. A redelivery says no time of its own: the broker's
    stands for it, which is later by its way there. That time bounds DLQ_TIME too: an export before it falls due (its
    expiry, and what clocks may differ by) is one whatever it says, and what it was written long after has been in the
    tail.
    """
    pauses = [fault for fault in ledger.history.faults if pauses_exports(fault)]
    tombstone_of = exported(ledger).tombstone_of
    for export in ledger.exports:
        lineage = export.lineage
        assert lineage is not None
        written_ms = export.timestamp_ms
        decided_ms = written_ms if export.time_ms is None else export.time_ms
        read_ms = max(earlier(decided_ms, READING_MS, pauses), earlier(written_ms, WRITING_MS + READING_MS, pauses))
        why = _why(ledger, export, tombstone_of[export.place], decided_ms, read_ms)
        if why:
            yield Violation(Kind.FALSE_EXPORT, lineage.original, f"{words.letter(export)}: {why}")


def _why(ledger: Ledger, export: Republished, own: WaitEntry | None, decided_ms: int, read_ms: int) -> str:
    lineage = export.lineage
    assert lineage is not None
    if lineage.registration is None:
        return "it names no registration"
    registered = ledger.entry_at.get(lineage.registration)
    if registered is None or registered.registration is None or registered.wait_id != lineage.wait_id:
        return f"{words.registration(lineage.registration)} is no registration of {lineage.wait_id}"
    told, expires_at_ms = ledger.history.told, registered.registration.expires_at_ms
    due_ms = expires_at_ms + max(0, told.skew_ms - ROUNDING_MS if told is not None else 0)
    if (at_ms := min(decided_ms, export.timestamp_ms)) < due_ms:
        return f"at {words.time(at_ms)}, it expires at {words.time(expires_at_ms)} and falls due {words.time(due_ms)}"
    for entry in ledger.entries_of[lineage.wait_id, registered.partition]:
        between = registered.offset < entry.offset and (own is None or entry.offset < own.offset)
        if between and entry.append_ms < read_ms:
            return (
                f"{words.entry(entry)} had come after its registration, and the tail was read between "
                f"{words.time(read_ms)} and {words.time(decided_ms)}"
            )
    return ""


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


def misrouted(ledger: Ledger) -> Iterator[Violation]:
    """Find exports that their registration's policy, attempts or topic didn't ask for.

    What may be too large for the redelivery topic may be dead-lettered in its place: from half of the largest wait
    record on, that isn't judged.
    """
    for export in ledger.exports:
        registered = ledger.registered_as(export)
        if registered is None or registered.registration is None:
            continue  # which is `false_export`'s
        if why := _why_misrouted(ledger, export, registered.registration):
            about = registered.registration.original
            yield Violation(Kind.MISROUTED, about, f"{words.letter(export)} of the {words.entry(registered)}: {why}")


def _why_misrouted(ledger: Ledger, export: Republished, said: Registration) -> str:
    again = said.expiry_policy == "redeliver" and said.delivery < said.max_deliveries
    asked = f"{said.expiry_policy}, attempt {said.delivery} of at most {said.max_deliveries}"
    if export.outcome == REDELIVERED:
        (topic,) = redelivery_topics([said.original[0]], said.group)
        if not again:
            return f"delivered again, and it says {asked}"
    else:
        topic = said.dead_letter_topic
        if again and not _is_large(ledger, said):
            return f"dead-lettered, and it says {asked}"
    return "" if export.topic == topic else f"it belongs into {topic}"


def _is_large(ledger: Ledger, said: Registration) -> bool:
    told = ledger.history.told
    return told is not None and 2 * ledger.history.registered_bytes.get(said.original, 0) > told.registration_bytes
