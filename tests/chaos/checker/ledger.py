"""A history by what the rules ask for: IDs, places, records."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeGuard, TypeVar

from tests.chaos.history.entries import (
    EXPORTS,
    Place,
    Registration,
    Republished,
    Tombstone,
    TopicRecord,
    Unreadable,
    WaitEntry,
    at,
)
from tests.chaos.history.history import Act, History, Input, Partition, Poll, Tables
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Kind, Mark
from wait_registry.records.wait_id import wait_id as derive_wait_id
from wait_registry.settings.processor import Oversized
from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import Coordinates

Item = TypeVar("Item")
Name = TypeVar("Name", bound=Hashable)

Finding = tuple[Coordinates | str, str]
"""What a rule finds: the place of the original record where it is known, else a wait ID or what was measured; why."""
# The clocks of processor, downstream and broker are one host's; each cuts its time to milliseconds.
ROUNDING_MS = 5
# On two busy cores a poll takes half a second. A processor has a margin of two.
LONGEST_POLL_MS = 1_500


class Ledger:
    """One history, indexed once. Only committed records count; everything is in the order of the log, or of time."""

    def __init__(self, history: History) -> None:
        self.history = history
        processor = history.settings.processor
        self.ttl_ms = round(processor.ttl_s * 1000)
        self.skew_ms = round(history.settings.wait.skew_allowance_s * 1000)
        self.attempt_ms = round(processor.handler_timeout_s * 1000)
        self.attempts = processor.max_attempts
        self.retry_statuses = processor.http.retry_statuses
        self.discard_statuses = processor.http.discard_statuses
        # Then every record is registered before its call.
        self.eager = set(history.modes) == {"eager"} and processor.oversized is Oversized.DEAD_LETTER
        self.register_after_ms = round(processor.register_after_s * 1000)
        self.registration_bytes = history.settings.wait.max_message_bytes

    @cached_property
    def polls(self) -> Sequence[Poll]:
        """The polls by their time, each end as high as it was ever seen before.

        What was below a high watermark once is acknowledged for good; a broker that has just started, or a new leader,
        may show a lower one for a moment.
        """
        grown: list[Poll] = []
        stable: dict[int, int] = {}
        waits: dict[int, int] = {}
        letters: dict[Partition, int] = {}
        for poll in sorted(self.history.polls, key=lambda poll: poll.began_ms):
            stable, waits = _highest(stable, poll.wait_stable), _highest(waits, poll.wait_ends)
            letters = _highest(letters, poll.letter_ends)
            grown.append(replace(poll, wait_stable=stable, wait_ends=waits, letter_ends=letters))
        return grown

    def first_poll(self, entry: WaitEntry, ends: Literal["wait_ends", "wait_stable"] = "wait_ends") -> Poll | None:
        """Return the first poll whose end, or last stable offset, of the wait topic is behind an entry."""
        number = bisect_right(self.polls, entry.offset, key=lambda poll: getattr(poll, ends).get(entry.partition, 0))
        return self.polls[number] if number < len(self.polls) else None

    def stalled_ms(self, from_ms: int, to_ms: int) -> int:
        """Return for how much of a period nothing was seen, ms; usual pauses between two polls don't count.

        The services next to the watch may have stalled as long, which is no fault of theirs.
        """
        pauses = ((before.ended_ms, later.ended_ms) for before, later in pairwise(self.polls))
        return sum(
            max(0, min(until_ms, to_ms) - max(since_ms, from_ms))
            for since_ms, until_ms in pauses
            if until_ms - since_ms > LONGEST_POLL_MS
        )

    @cached_property
    def inputs(self) -> Mapping[Coordinates, Input]:
        return {record.place: record for record in self.history.inputs}

    @cached_property
    def log(self) -> Sequence[WaitEntry]:
        """The wait topic as read_committed shows it."""
        return sorted((entry for entry in self.history.wait_log if entry.committed), key=lambda entry: entry.place)

    @cached_property
    def unreadable(self) -> Sequence[Unreadable]:
        return [entry for entry in self.log if isinstance(entry, Unreadable)]

    @cached_property
    def registrations(self) -> Sequence[Registration]:
        return [entry for entry in self.log if isinstance(entry, Registration)]

    @cached_property
    def registered_at(self) -> Mapping[Place, Registration]:
        return {entry.place: entry for entry in self.registrations}

    @cached_property
    def entries_of(self) -> Mapping[tuple[str, int], Sequence[Registration | Tombstone]]:
        """Registrations and tombstones by wait ID and partition of the wait topic."""
        readable = (entry for entry in self.log if isinstance(entry, Registration | Tombstone))
        return grouped(readable, lambda entry: (entry.wait_id, entry.partition))

    @cached_property
    def registrations_of_id(self) -> Mapping[str, Sequence[Registration]]:
        """Registrations by wait ID, in any partition."""
        return grouped(self.registrations, lambda entry: entry.wait_id)

    @cached_property
    def registrations_of(self) -> Mapping[Coordinates, Sequence[Registration]]:
        """Registrations by where their record was consumed."""
        return grouped(self.registrations, lambda entry: entry.consumed)

    @cached_property
    def registrations_by_original(self) -> Mapping[Coordinates, Sequence[Registration]]:
        return grouped(self.registrations, lambda entry: entry.original)

    def instances_of(self, wait_id: str | None) -> set[str]:
        """Return the processes that registered an ID."""
        return {entry.instance for entry in self.registrations_of_id.get(wait_id or "", ())}

    @cached_property
    def open(self) -> Sequence[Registration]:
        """Registrations that no later entry of their ID follows."""
        lasts = (entries[-1] for entries in self.entries_of.values())
        return [entry for entry in lasts if isinstance(entry, Registration)]

    @cached_property
    def letters(self) -> Sequence[Republished]:
        """Dead letters of this system."""
        return [one for one in self.history.dead_letters if _is_ours(one) and one.reason]

    @cached_property
    def letters_of(self) -> Mapping[Coordinates, Sequence[Republished]]:
        """Dead letters by the place of their record's first delivery."""
        return grouped(self.letters, lambda letter: letter.original)

    @cached_property
    def letters_of_id(self) -> Mapping[str, Sequence[Republished]]:
        return grouped(self.letters, lambda letter: letter.wait_id)

    @cached_property
    def unregistered_letters(self) -> Mapping[str, Sequence[Republished]]:
        """Dead letters of records that weren't registered, by the wait ID that they would have had."""
        refused = (Reason.UNREGISTRABLE, Reason.MALFORMED)
        never = (one for one in self.letters if one.reason in refused or not (self.eager or one.registration))
        return grouped(never, lambda letter: letter.wait_id)

    @cached_property
    def redelivered(self) -> Mapping[Coordinates, Republished]:
        """Records that the group gets again, redelivered or retried, by their own place."""
        return {one.place: one for one in self.history.redelivered if _is_ours(one)}

    @cached_property
    def retries_of_id(self) -> Mapping[str, Sequence[Republished]]:
        """Retry records by the wait ID of the delivery that failed."""
        return grouped((one for one in self.redelivered.values() if one.delay_s), lambda one: one.wait_id)

    @cached_property
    def exports(self) -> Sequence[Republished]:
        """What the sweeper published: `expired` dead letters, and redeliveries that no operator's mark names."""
        again = (one for place, one in self.redelivered.items() if place not in self.redriven)
        return [one for one in (*self.letters, *again) if one.outcome in EXPORTS]

    @cached_property
    def redriven(self) -> Mapping[Coordinates, Mark]:
        """The marks of redrives, by where they say that the record is."""
        marks = (event for event in self.history.operations if isinstance(event, Mark))
        return {one.target[:]: one for one in marks if one.kind is Kind.REDRIVE and one.target is not None}

    @cached_property
    def acts(self) -> Mapping[Coordinates, Sequence[tuple[Act, int, int]]]:
        """What operators did with each consumable record, in the order of time; from when, and until when."""
        found: defaultdict[Coordinates, list[tuple[Act, int, int]]] = defaultdict(list)
        for fault in sorted(self.history.faults, key=lambda fault: fault.began_ms):
            for act, partition, within in fault.concerned:
                offsets = self.consumable.get(partition, ())
                for offset in offsets[bisect_left(offsets, within.start) : bisect_left(offsets, within.stop)]:
                    found[*partition, offset].append((act, fault.began_ms, fault.ended_ms))
        return dict(found)

    def is_passed(self, place: Coordinates, at_ms: float = math.inf) -> bool:
        """Return whether the group isn't to handle a record, by what operators had done until a moment.

        "The skipped records aren't consumed records of the group any more" (docs/guarantees.md), until it is rewound.
        """
        acts = [act for act, from_ms, _ in self.acts.get(place, ()) if from_ms <= at_ms and act is not Act.REPLAYED]
        return bool(acts) and acts[-1] is not Act.REWOUND

    def is_given_up(self, place: Coordinates) -> bool:
        """Return whether a record needs no end: it was passed over or deleted, and neither rewound nor replayed later.

        In a retry or redelivery topic what is passed over must still be there: the processors "delete nothing"
        (docs/runbook.md). "P1 holds for them again if you replay it" (docs/guarantees.md).
        """
        last = self.acts[place][-1][0] if place in self.acts else None
        is_kept = place[2] >= self.history.begins.get(place[:2], 0)
        return last is Act.DELETED or (last is Act.PASSED and is_kept)

    @cached_property
    def id_of(self) -> Mapping[Coordinates, str]:
        """The wait ID that each consumable record must have, by where it is consumed."""
        moments = {record.place: record.timestamp_ms for record in self.history.inputs}
        moments |= {place: record.append_ms for place, record in self.redelivered.items()}
        return {
            place: derive_wait_id(self.history.cluster_id, place, self.history.group, moment_ms)
            for place, moment_ms in moments.items()
        }

    @cached_property
    def _place_of_id(self) -> Mapping[str, Coordinates]:
        """Where a record is consumed, by its wait ID."""
        return {wait_id: place for place, wait_id in self.id_of.items()}

    @cached_property
    def original_of(self) -> Mapping[str, Coordinates]:
        """The record of a wait ID: as its registration says, else as it is derived."""
        derived = {wait_id: self.original_at(place) for place, wait_id in self.id_of.items()}
        return derived | {entry.wait_id: entry.original for entry in self.registrations}

    @cached_property
    def consumable(self) -> Mapping[Partition, Sequence[int]]:
        """Offsets of all published and redelivered records, by partition, ascending."""
        offsets = grouped(self.id_of, lambda place: (place[0], place[1]))
        return {partition: sorted(place[2] for place in places) for partition, places in offsets.items()}

    @cached_property
    def calls_of(self) -> Mapping[Coordinates, Sequence[Call]]:
        """Calls by the place of their record's first delivery."""
        return grouped(self._calls, lambda call: call.coordinates)

    @cached_property
    def calls_of_id(self) -> Mapping[str, Sequence[Call]]:
        """Calls by the group's processors: a replay "registers nothing, and P2 to P4 don't concern it"."""
        return grouped((call for call in self._calls if not is_replay(call)), lambda call: call.wait_id)

    @cached_property
    def replays_of_id(self) -> Mapping[str, Sequence[Call]]:
        """Calls by replays."""
        return grouped(filter(is_replay, self._calls), lambda call: call.wait_id)

    @cached_property
    def committed_to(self) -> Mapping[Partition, int]:
        """The highest offset that was ever seen committed, by partition."""
        highest = dict(self.history.committed_at_end)
        for poll in self.history.polls:
            highest = _highest(highest, poll.committed)
        return highest

    @cached_property
    def _calls(self) -> Sequence[Call]:
        return sorted(self.history.calls or (), key=lambda call: call.finished_ms)

    def showing(self, tables: Tables) -> Ledger:
        """Return this ledger with other tables, up to the positions that these have; it shares all indexes."""
        other, ends = copy(self), {(row.topic, row.partition): row.next_offset for row in tables.progress}
        other.history = replace(self.history, ends=ends, tables=tables, snapshots=None)
        return other

    def registered_as(self, one: Republished) -> Registration | None:
        """Return the registration that a dead letter or redelivery names, if it is one of its ID."""
        entry = None if one.registration is None else self.registered_at.get(one.registration)
        return entry if entry is not None and entry.wait_id == one.wait_id else None

    def is_consumed(self, place: Coordinates) -> bool:
        """Return whether anything shows that the group has consumed the record at a place."""
        return (
            self.committed_to.get(place[:2], 0) > place[2]
            or place in self.registrations_of
            or self.id_of.get(place, "") in self.calls_of_id
        )

    def is_final(self, call: Call) -> bool:
        """Return whether a call was answered for good: with success, or with a status that isn't retried."""
        return call.succeeded or not (call.status in (0, ABORTED) or call.status in self.retry_statuses)

    def is_blocked(self, call: Call) -> bool:
        """Return whether a processor may have cancelled a call for good, because it had blocked a slot for so long.

        On its way to the downstream it was blocking already.
        """
        processor = self.history.settings.processor
        took_s = (call.finished_ms - call.started_ms) / 1000
        return processor.cancel_blocked and call.status == ABORTED and took_s >= processor.blocked_after_s / 2

    def settles(self, call: Call) -> bool:
        """Return whether a call settled its record, even if that was never registered."""
        return call.succeeded or ((is_replay(call) or not self.eager) and call.status in self.discard_statuses)

    def is_replayed(self, wait_id: str, at_ms: int) -> bool:
        """Return whether at a moment a replay ran that had a record's place in its ranges."""
        acts = self.acts.get(self._place_of_id.get(wait_id, ("", 0, 0)), ())
        return any(act is Act.REPLAYED and from_ms <= at_ms <= until_ms for act, from_ms, until_ms in acts)

    def original_at(self, place: Coordinates) -> Coordinates:
        """Return the place of the first delivery of a record that is consumed somewhere."""
        return self.redelivered[place].original if place in self.redelivered else place

    def about(self, wait_id: str) -> Coordinates | str:
        """Return what a violation about an ID is about."""
        return self.original_of.get(wait_id, wait_id)


def is_replay(call: Call) -> bool:
    """Return whether a replay made a call, by the path of its handler's URL."""
    return call.path.startswith("replay-")


def about_record(record: TopicRecord) -> Coordinates | str:
    """Return what a violation about a dead letter or redelivery is about."""
    return record.original if isinstance(record, Republished) else at(record.place)


def grouped(items: Iterable[Item], name_of: Callable[[Item], Name | None]) -> Mapping[Name, Sequence[Item]]:
    """Return the items by their names, without those that have none."""
    groups: dict[Name, list[Item]] = defaultdict(list)
    for item in items:
        if (name := name_of(item)) is not None:
            groups[name].append(item)
    return dict(groups)


def _is_ours(record: TopicRecord) -> TypeGuard[Republished]:
    return record.committed and isinstance(record, Republished)


def _highest(before: Mapping[Name, int], seen: Mapping[Name, int]) -> dict[Name, int]:
    return {**before, **{name: max(end, before.get(name, 0)) for name, end in seen.items()}}
