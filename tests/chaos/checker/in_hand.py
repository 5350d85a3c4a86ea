"""What each instance had registered and not finished, from when to when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, WaitEntry


@dataclass(frozen=True, slots=True)
class InHand:
    """A record of one instance: its first and last registration, and when it can have let go of it at the earliest."""

    first: WaitEntry
    last: WaitEntry
    finished_ms: int


def in_hand(ledger: Ledger) -> Mapping[str, Sequence[InHand]]:
    """Return what each instance had in hand.

    What was registered again by the same instance counts from the last time on. An id that several have registered has
    changed hands in between, at a moment that isn't seen from outside: it is left out. Without calls nobody can tell
    when a record was finished, since the tombstone comes later: then there is nothing.
    """
    found: dict[str, list[InHand]] = defaultdict(list)
    for entries in ledger.entries_of.values() if ledger.history.calls is not None else ():
        instances = instances_of(entries)
        if len(instances) == 1:
            numbers = [number for number, entry in enumerate(entries) if entry.registration is not None]
            last = numbers[-1]
            finished_ms = _finished_ms(ledger, entries[last], entries[last + 1] if last + 1 < len(entries) else None)
            found[instances.pop()].append(InHand(entries[numbers[0]], entries[last], finished_ms))
    return found


def instances_of(entries: Iterable[WaitEntry]) -> set[str]:
    """Return who has made these registrations."""
    return {entry.registration.instance for entry in entries if entry.registration is not None}


def _finished_ms(ledger: Ledger, entry: WaitEntry, tombstone: WaitEntry | None) -> int:
    if tombstone is None:
        return max((look.ended_ms for look in ledger.history.looks), default=entry.append_ms)
    if tombstone.outcome == DEAD_LETTERED:
        causes: Sequence[int] = [letter.timestamp_ms for letter in ledger.letters_of_id.get(entry.wait_id, ())]
    else:
        calls = ledger.calls_of_id.get(entry.wait_id, ())
        causes = [call.finished_ms for call in calls if call.succeeded or tombstone.outcome == DISCARDED]
    possible = [moment_ms for moment_ms in causes if entry.append_ms <= moment_ms <= tombstone.append_ms]
    return min(possible, default=tombstone.append_ms)
