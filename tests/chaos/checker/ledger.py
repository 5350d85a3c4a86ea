"""A history by what the rules ask for: ids, places, records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from tests.chaos.checker.sights import growing
from tests.chaos.history.entries import EXPORTS, MALFORMED, UNREGISTRABLE, Place, Republished, WaitEntry
from tests.chaos.history.history import History, Look, Partition, Tables
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates, Published
from wait_registry.records.wait_id import wait_id as derived

Item = TypeVar("Item")
Name = TypeVar("Name")


class Ledger:
    """One history, indexed once. Only what is committed counts; everything is in the order of the log, or of time."""

    def __init__(self, history: History) -> None:
        self.history = history

    @cached_property
    def looks(self) -> Sequence[Look]:
        """The looks, by their time, with ends that only grow."""
        return growing(sorted(self.history.looks, key=lambda look: look.began_ms))

    @cached_property
    def published(self) -> Mapping[Coordinates, Published]:
        """Published records by place."""
        return {record.coordinates: record for record in self.history.published}

    @cached_property
    def log(self) -> Sequence[WaitEntry]:
        """The wait topic as read_committed shows it."""
        return sorted((entry for entry in self.history.wait_log if entry.committed), key=lambda entry: entry.place)

    @cached_property
    def entries_of(self) -> Mapping[tuple[str, int], Sequence[WaitEntry]]:
        """Registrations and tombstones by wait id and partition of the wait topic."""
        readable = (entry for entry in self.log if not entry.unreadable)
        return _grouped(readable, lambda entry: (entry.wait_id, entry.partition))

    @cached_property
    def entry_at(self) -> Mapping[Place, WaitEntry]:
        """Everything in the wait topic by its place."""
        return {entry.place: entry for entry in self.log}

    @cached_property
    def registrations(self) -> Sequence[WaitEntry]:
        """All registrations."""
        return [entry for entry in self.log if entry.registration is not None]

    @cached_property
    def registrations_of_id(self) -> Mapping[str, Sequence[WaitEntry]]:
        """Registrations by wait id, whichever partition they are in."""
        return _grouped(self.registrations, lambda entry: entry.wait_id)

    @cached_property
    def registrations_of(self) -> Mapping[Coordinates, Sequence[WaitEntry]]:
        """Registrations by where their record was consumed."""
        return _grouped(self.registrations, lambda entry: entry.registration.consumed if entry.registration else None)

    @cached_property
    def registrations_by_original(self) -> Mapping[Coordinates, Sequence[WaitEntry]]:
        """Registrations by the place of their record's first delivery."""
        return _grouped(self.registrations, lambda entry: entry.registration.original if entry.registration else None)

    @cached_property
    def original_of(self) -> Mapping[str, Coordinates]:
        """The record of a wait id: as its registration says, else as it is derived."""
        derived = {wait_id: self.original_at(place) for place, wait_id in self.id_of.items()}
        return derived | {
            entry.wait_id: entry.registration.original for entry in self.registrations if entry.registration is not None
        }

    @cached_property
    def standing(self) -> Sequence[WaitEntry]:
        """Registrations that nothing came after."""
        lasts = (entries[-1] for entries in self.entries_of.values())
        return [entry for entry in lasts if entry.registration is not None]

    @cached_property
    def letters(self) -> Sequence[Republished]:
        """Dead letters of this system."""
        return [one for one in self.history.dead_letters if one.committed and one.lineage is not None and one.reason]

    @cached_property
    def letters_of(self) -> Mapping[Coordinates, Sequence[Republished]]:
        """Dead letters by the place of their record's first delivery."""
        return _grouped(self.letters, lambda letter: letter.lineage.original if letter.lineage else None)

    @cached_property
    def letters_of_id(self) -> Mapping[str, Sequence[Republished]]:
        """Dead letters by wait id."""
        return _grouped(self.letters, lambda letter: letter.lineage.wait_id if letter.lineage else None)

    @cached_property
    def unregistered_letters(self) -> Mapping[str, Sequence[Republished]]:
        """Dead letters of what could not be registered, by the wait id that it would have had."""
        return {
            wait_id: found
            for wait_id, letters in self.letters_of_id.items()
            if (found := [letter for letter in letters if letter.reason in (UNREGISTRABLE, MALFORMED)])
        }

    @cached_property
    def redelivered(self) -> Mapping[Coordinates, Republished]:
        """Redelivered records by their own place."""
        return {one.place: one for one in self.history.redelivered if one.committed and one.lineage is not None}

    @cached_property
    def exports(self) -> Sequence[Republished]:
        """What the sweeper published: `expired` dead letters and redeliveries."""
        everything = (*self.letters, *self.redelivered.values())
        return [one for one in everything if one.outcome in EXPORTS]

    @cached_property
    def id_of(self) -> Mapping[Coordinates, str]:
        """The wait id that each consumable record must have, by where it is consumed."""
        moments = {record.coordinates: record.timestamp_ms for record in self.history.published}
        moments |= {place: record.timestamp_ms for place, record in self.redelivered.items()}
        return {
            place: derived(self.history.cluster_id, *place, self.history.group, moment_ms)
            for place, moment_ms in moments.items()
        }

    @cached_property
    def consumable(self) -> Mapping[Partition, Sequence[int]]:
        """Offsets of all published and redelivered records, by partition, ascending."""
        offsets = _grouped(self.id_of, lambda place: (place[0], place[1]))
        return {partition: sorted(place[2] for place in places) for partition, places in offsets.items()}

    @cached_property
    def calls_of(self) -> Mapping[Coordinates, Sequence[Call]]:
        """Calls by the place of their record's first delivery."""
        return _grouped(self._calls, lambda call: _place_of(call))

    @cached_property
    def calls_of_id(self) -> Mapping[str, Sequence[Call]]:
        """Calls by wait id."""
        return _grouped(self._calls, lambda call: call.wait_id)

    @cached_property
    def committed_to(self) -> Mapping[Partition, int]:
        """The highest offset that was ever seen committed, by partition."""
        highest = dict(self.history.committed_at_end)
        for look in self.history.looks:
            for partition, offset in look.committed.items():
                highest[partition] = max(offset, highest.get(partition, 0))
        return highest

    def showing(self, tables: Tables) -> Ledger:
        """Return this ledger with other tables, as far as the sink had come by them.

        What is indexed is shared: none of it is of tables.
        """
        other = copy(self)
        other.history = replace(
            self.history,
            ends={(row.topic, row.partition): row.next_offset for row in tables.progress},
            wait_rows=tables.wait,
            dead_letter_rows=tables.dead_letter,
            quarantine_rows=tables.quarantine,
            progress_rows=tables.progress,
            views=None,
        )
        return other

    def registered_as(self, one: Republished) -> WaitEntry | None:
        """Return the registration that a dead letter or redelivery names; None where that is none of its id."""
        if one.lineage is None or one.lineage.registration is None:
            return None
        entry = self.entry_at.get(one.lineage.registration)
        return None if entry is None or entry.registration is None or entry.wait_id != one.lineage.wait_id else entry

    def is_consumed(self, place: Coordinates) -> bool:
        """Return whether anything shows that the group has consumed what stands there."""
        return (
            self.committed_to.get(place[:2], 0) > place[2]
            or place in self.registrations_of
            or self.id_of.get(place, "") in self.calls_of_id
        )

    def original_at(self, place: Coordinates) -> Coordinates:
        """Return the place of the first delivery of what is consumed somewhere."""
        again = self.redelivered.get(place)
        return place if again is None or again.lineage is None else again.lineage.original

    def about(self, wait_id: str) -> Coordinates | str:
        """Return what a violation about an id is about."""
        return self.original_of.get(wait_id, wait_id)

    @cached_property
    def _calls(self) -> Sequence[Call]:
        return sorted(self.history.calls or (), key=lambda call: call.finished_ms)


def _place_of(call: Call) -> Coordinates | None:
    if call.topic is None or call.partition is None or call.offset is None:
        return None
    return (call.topic, call.partition, call.offset)


def _grouped(items: Iterable[Item], name_of: Callable[[Item], Name | None]) -> Mapping[Name, Sequence[Item]]:
    groups: dict[Name, list[Item]] = defaultdict(list)
    for item in items:
        if (name := name_of(item)) is not None:
            groups[name].append(item)
    return dict(groups)
