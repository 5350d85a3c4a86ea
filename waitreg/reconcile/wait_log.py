"""The wait topic's log by ID, as far as it is kept: compaction removes an entry that has a later one of its ID."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wait_registry.records.tombstone import Outcome
from waitreg.load.manifest import Coordinates, Fingerprint

# The record continues under another ID, which only its next wait record has.
_CONTINUES = (Outcome.RETRIED.value, Outcome.REDELIVERED.value)


@dataclass(frozen=True, slots=True)
class DeadLetterSeen:
    """One dead letter, with the original cut out of it; ``time_ms`` is when it was dead-lettered."""

    original: Coordinates
    timestamp_ms: int
    reason: str
    wait_id: str
    registration: tuple[int, int] | None
    time_ms: int
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class WaitEntry:
    """One entry of the wait topic: a registration (``original`` set) or a tombstone (``outcome``, when readable)."""

    partition: int
    offset: int
    append_ms: int
    wait_id: str
    original: Coordinates | None
    outcome: str | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Return partition and offset."""
        return (self.partition, self.offset)


class WaitLog:
    """The log's entries by ID, narrowed to the published records.

    Compaction removes of an ID, in a partition, every entry before the last one. What is left of an ID whose
    registration was removed begins with a tombstone or a later registration.
    """

    def __init__(
        self,
        entries: Iterable[WaitEntry],
        topics: Collection[str],
        *,
        wait_ids: Mapping[Coordinates, str],
        named: Collection[str] = (),
    ) -> None:
        """Take the log.

        Args:
            entries: what was read, in any order.
            topics: those of the published records.
            wait_ids: the IDs that published records get at their first delivery, as far as known.
            named: further IDs that belong to them, though only tombstones may be left of these.
        """
        by_id: dict[str, list[WaitEntry]] = defaultdict(list)
        for entry in sorted(entries, key=lambda entry: entry.place):
            by_id[entry.wait_id].append(entry)
        own = {*wait_ids.values(), *named}
        self.by_id: dict[str, Sequence[WaitEntry]] = {
            wait_id: history for wait_id, history in by_id.items() if wait_id in own or _is_of(history, topics)
        }
        self._wait_ids = wait_ids
        self._record_of = {wait_id: record for record, wait_id in wait_ids.items()}
        self.registered_ids = {wait_id for wait_id, history in self.by_id.items() if _is_registered(history)}
        self.registered = self._originals(self.registered_ids)
        self.discarded = self._originals(
            entry.wait_id for history in self.by_id.values() for entry in history if entry.outcome == Outcome.DISCARDED
        )

    def _originals(self, wait_ids: Iterable[str]) -> set[Coordinates]:
        found = set()
        for wait_id in wait_ids:
            found |= {entry.original for entry in self.by_id[wait_id] if entry.original is not None}
            if wait_id in self._record_of:
                found.add(self._record_of[wait_id])
        return found

    def registration(self, dead_letter: DeadLetterSeen) -> WaitEntry | None:
        """Return the entry that a dead letter names."""
        for entry in self.by_id.get(dead_letter.wait_id, ()):
            if entry.original is not None and entry.place == dead_letter.registration:
                return entry
        return None

    def was_compacted(self, dead_letter: DeadLetterSeen) -> bool:
        """Return whether compaction removed the registration that a dead letter names."""
        if dead_letter.registration is None or self.registration(dead_letter) is not None:
            return False
        partition, offset = dead_letter.registration
        left = [entry for entry in self.by_id.get(dead_letter.wait_id, ()) if entry.partition == partition]
        return bool(left) and left[0].offset > offset

    def continues_unseen(self, record: Coordinates) -> bool:
        """Return whether a record continues under another ID that nothing left in the log names."""
        history = self.by_id.get(self._wait_ids.get(record, ""), ())
        return bool(history) and all(entry.original is None for entry in history) and history[-1].outcome in _CONTINUES

    def export_tombstone(self, wait_id: str, registration: tuple[int, int]) -> WaitEntry | None:
        """Return the tombstone that the sweeper wrote for a registration."""
        for entry in self.by_id.get(wait_id, ()):
            if entry.outcome == Outcome.EXPIRED and _follows(registration, entry):
                return entry
        return None

    def belongs_elsewhere(self, answered_ms: int, registered: WaitEntry) -> bool:
        """Return whether a call that succeeded then was made for an earlier or a later registration of the ID."""
        later = any(
            entry.original is not None and _follows(registered.place, entry) and entry.append_ms <= answered_ms
            for entry in self.by_id[registered.wait_id]
        )
        return later or answered_ms < registered.append_ms

    def was_settled_before(self, dead_letter: DeadLetterSeen) -> bool:
        """Return whether the topic held a later entry of the ID when the dead letter was made."""
        registered = self.registration(dead_letter)
        own = None if registered is None else self.export_tombstone(dead_letter.wait_id, registered.place)
        if registered is None or own is None:
            return False
        return any(
            entry.append_ms < dead_letter.time_ms and _between(registered, entry, own)
            for entry in self.by_id[dead_letter.wait_id]
        )


def _is_of(history: Iterable[WaitEntry], topics: Collection[str]) -> bool:
    return any(entry.original is not None and entry.original[0] in topics for entry in history)


def _is_registered(history: Sequence[WaitEntry]) -> bool:
    last = {entry.partition: entry for entry in history}
    return any(entry.original is not None for entry in last.values())


def _follows(registration: tuple[int, int], entry: WaitEntry) -> bool:
    return entry.partition == registration[0] and entry.offset > registration[1]


def _between(registered: WaitEntry, entry: WaitEntry, own: WaitEntry) -> bool:
    if entry.partition == registered.partition:
        return registered.offset < entry.offset < own.offset
    # An ID in two partitions is a fault of its own; only the broker's clock orders the two.
    return registered.append_ms <= entry.append_ms
