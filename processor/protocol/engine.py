"""The engine: what follows from each event. `processor/protocol/__init__.py` is the page to read first."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final

from processor.protocol import events
from processor.protocol.commits import Commits
from processor.protocol.effects import Cancel, Effect, FlowControl, Publish, Rewind, Start
from processor.protocol.events import Instant
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import UNKNOWN, DueTimes, Partition, Recorded
from processor.protocol.rebalances import Rebalances
from processor.protocol.record import SUCCEED, UNREGISTERED_WORK, WORK, Entry, State, Step
from processor.protocol.registering import Registering, Rules
from processor.protocol.results import DeadLetter, Failed, RetryDelays
from wait_registry.records.topics import TopicPartition

ANSWER_SOON_S: Final = 1.0
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 0.02


class Engine:
    """Register, commit, call, settle. Owns the state of every record.

    Args:
        rules: the numbers.
        records: will have all open records; no other object changes them.
        flow: decides how much at once; it reads the same records.
        retries: where a failed record goes.

    Attributes:
        partitions: that are assigned, by their places.
        records: that are open.
        refused: those of them whose dead letters their topic has refused.
        flow: decides how much at once.
    """

    def __init__(self, rules: Rules, records: OpenRecords, flow: FlowControl, retries: RetryDelays) -> None:
        self.partitions = records.partitions
        self.records = records
        self.refused = records.refused
        self._rules = rules
        self.flow = flow
        self._slots = flow.slots
        self._retries = retries
        self._effects: list[Effect] = []
        self._commits = Commits(rules.commit_interval_s, Recorded(rules.uncommitted_max, rules.mode.value))
        self._registering = Registering(rules, records, self._commits, flow.slots, self._effects)
        self._rebalances = Rebalances(rules, records, self._commits, self._registering, flow, self._effects)
        self._tick_due_s = self._slow_due_s = -math.inf
        self._steps: dict[type, Callable[[Any, Instant], None]] = {
            events.Polled: self._polled,
            events.ReadTo: self._read_to,
            events.EndsSeen: self._ends_seen,
            events.PollingWithoutRoom: self._polling_without_room,
            events.Registered: self._registered,
            events.RegistrationRefused: self._registering.refused,
            events.CommitAnswered: self._commit_answered,
            events.CallsEnded: self._calls_ended,
            events.Published: self._published,
            events.RetryRefused: self._retry_refused,
            events.DeadLetterRefused: self._dead_letter_refused,
            events.Assigned: self._rebalances.assigned,
            events.Revoking: self._rebalances.revoking,
            events.Revoked: self._rebalances.revoked,
            events.Lost: self._rebalances.lost,
            events.SlotsBlocked: flow.slots.set_blocked,
            events.Tick: self._tick,
            events.Draining: self._rebalances.drain,
        }

    def step(self, event: events.Event, now: Instant) -> list[Effect]:
        """Take an event.

        Args:
            event: what happened.
            now: the present moment.

        Returns:
            What is to be done, in order.

        Raises:
            LifecycleError: the event contradicts the state of a record; the process must end.
            PartitionError: the event contradicts the offsets of a partition; the process must end.
        """
        self._steps[type(event)](event, now)
        if self._slots.waiting:
            self._start(now)
        effects = self._effects.copy()
        self._effects.clear()
        return effects

    # ---- what the loop and the telemetry ask

    def wake_s(self, now_s: float) -> float:
        """Return in how many seconds the next `Tick` is due, at the latest."""
        slow_s = max(self._slow_due_s, self._registering.next_slow_s())
        return max(0.0, min(self._tick_due_s, slow_s, self.flow.next_due_s) - now_s)

    def commit_awaited_since_s(self) -> float:
        """Return since when calls wait for nothing but the answer of a commit, minus infinity if none do."""
        waits = self._slots.free > 0 and self._registering.wait_for_commit()
        return self._commits.sent_s if waits else -math.inf

    def waits_for_operator(self) -> bool:
        """Return whether every open record is in a partition that a refused dead letter holds, and no call runs."""
        held = {entry.partition for entry in self.refused}
        return bool(held) and not self._slots.running and all(entry.partition in held for entry in self.records)

    def unfinished(self, places: Sequence[TopicPartition]) -> int:
        """Return how many records of partitions should end before these are given up."""
        again = UNREGISTERED_WORK if self._rules.passes_registered else WORK
        return self.records.unfinished(places, again)

    # ---- records come

    def _polled(self, event: events.Polled, now: Instant) -> None:
        partition = self.partitions[event.place]
        if not partition.is_announced:
            self._rebalances.announce(partition, event.offsets[0])
            return
        if partition.due_times is not None:
            event = self._due(event, partition, partition.due_times, now)
            if not event.offsets:
                return
        entries = self._entries(partition, event, now.s)
        if event.foreign:
            entries = self._pass_over(entries, event)
        self._slots.enter(entries)
        if event.malformed:
            entries = self._pass_malformed_on(entries, event)
        self._registering.admit(partition, entries, now)
        if 2 * partition.uncommitted >= self._rules.uncommitted_max:
            self._commits.hasten()
        self._effects += self.flow.polled(partition, event.sizes)

    def _due(self, event: events.Polled, partition: Partition, due_times: DueTimes, now: Instant) -> events.Polled:
        """Return the part of a poll that may be handled; wait for the rest, of which nothing is kept."""
        count = due_times.due(event.offsets, event.timestamps_ms, now.wall_ms)
        if count == len(event.offsets):
            return event
        due_s = now.s + (due_times.next_ms - now.wall_ms) / 1000
        self._effects += self.flow.is_early(partition, due_s, now.s)
        self._effects.append(Rewind(event.place, event.offsets[count]))
        parts = (event.offsets[:count], event.records[:count], event.sizes[:count])
        malformed = {offset: error for offset, error in event.malformed.items() if offset in parts[0]}
        return events.Polled(event.place, *parts, malformed, event.foreign)

    def _entries(self, partition: Partition, event: events.Polled, polled_s: float) -> list[Entry]:
        number, offsets = partition.polled, event.offsets
        partition.add(array("q", offsets))
        numbers = range(number, number + len(offsets))
        is_first = partition.in_warm_up(number, offsets[0])
        warm_up = map(partition.in_warm_up, numbers, offsets) if is_first else repeat(False, len(offsets))
        polled = zip(numbers, offsets, event.records, event.sizes, warm_up, strict=True)
        return [Entry(partition, n, offset, record, size, polled_s, first) for n, offset, record, size, first in polled]

    def _pass_over(self, entries: list[Entry], event: events.Polled) -> list[Entry]:
        for entry in entries:
            if entry.offset in event.foreign:
                entry.partition.make_safe(entry.number)
        return [entry for entry in entries if entry.offset not in event.foreign]

    def _pass_malformed_on(self, entries: list[Entry], event: events.Polled) -> list[Entry]:
        malformed = [entry for entry in entries if entry.offset in event.malformed]
        self.records.add(malformed)
        for entry in malformed:
            self.records.fail(entry, DeadLetter("malformed", event.malformed[entry.offset], ours=True))
        self._effects.append(Publish(malformed))
        return [entry for entry in entries if entry.offset not in event.malformed]

    def _read_to(self, event: events.ReadTo, now: Instant) -> None:
        partition = self.partitions[event.place]
        # The first record of a log shows which offset to commit. What is polled in a drain is dropped.
        if partition.position != UNKNOWN and not self.flow.draining:
            partition.read_to(event.offset)

    def _ends_seen(self, event: events.EndsSeen, now: Instant) -> None:
        for partition in self.records.at(event.ends):
            if partition.due_times is not None:
                partition.due_times.seen(event.ends[partition.place], now.wall_ms)

    def _polling_without_room(self, event: events.PollingWithoutRoom, now: Instant) -> None:
        # The answer of a commit makes room soon, and comes with polls only.
        self._effects += self.flow.polling_without_room(now.s - self.commit_awaited_since_s() <= ANSWER_SOON_S)

    # ---- calls

    def _start(self, now: Instant) -> None:
        started, overdue = self._slots.start(now.s)
        self._registering.register(overdue, now, Step.OVERDUE)
        if started:
            self._effects.append(Start(started))

    def _calls_ended(self, event: events.CallsEnded, now: Instant) -> None:
        settled: list[Entry] = []
        failed: list[Entry] = []
        given_up: list[Entry] = []
        abandoned = retriable = 0
        calls = self._slots.with_cancelled(event.calls, now.s)
        is_settled = State.SETTLED  # a lookup in an enum is slow
        for entry, result in calls:
            if result is None:
                abandoned += 1
                taken = entry.take(Step.ABANDON)
                if taken:
                    self._registering.close([entry])
            elif isinstance(result, Failed):
                retriable += result.retriable
                taken = self.records.fail(entry, self._retries.after(result, entry.partition.came_from_s))
                if taken:
                    failed.append(entry)
            else:
                taken = entry.take(SUCCEED, result)
                if taken and entry.state is is_settled:
                    settled.append(entry)
            if not taken:
                given_up.append(entry)
        self._slots.ended(calls, len(calls) - abandoned, retriable, now.s)
        self._slots.leave(given_up)
        self._registering.settle(settled)
        if failed:
            self._effects.append(Publish(failed))

    # ---- answers of the broker

    def _registered(self, event: events.Registered, now: Instant) -> None:
        self._registering.registered(event.entries)
        if self._registering.wait_for_commit():
            self._commit(now)

    def _published(self, event: events.Published, now: Instant) -> None:
        published = [entry for entry in event.entries if entry.take(Step.PUBLISHED)]
        for entry in published:
            self.refused.remove(entry)
        self._registering.settle([entry for entry in published if entry.state is State.SETTLED])

    def _retry_refused(self, event: events.RetryRefused, now: Instant) -> None:
        event.entry.replace_outcome(DeadLetter("failed", event.error, ours=True))
        self._effects.append(Publish([event.entry]))

    def _dead_letter_refused(self, event: events.DeadLetterRefused, now: Instant) -> None:
        entry = event.entry
        if entry.state is State.DROPPED:
            return
        is_kept = entry.state is State.PUBLISHING_REGISTERED and self._rules.passes_registered
        if self.records.is_assigned(entry.partition) and not is_kept:
            self.refused.add(entry, now.s)
            self._effects += self.flow.fetch([entry.partition])
        else:
            # The next owner's, or kept by its registration, which expires.
            self.refused.remove(entry)
            entry.take(Step.ABANDON)
            self._registering.close([entry])

    def _commit(self, now: Instant) -> None:
        """Request the committable offsets that are ahead of the confirmed ones; one commit is in flight at most."""
        commit, unanswered = self._commits.request(self.partitions.values(), now.s)
        if commit is not None:
            self._effects.append(commit)
        for partition in unanswered:
            self._registering.leave_held(partition)

    def _commit_answered(self, event: events.CommitAnswered, now: Instant) -> None:
        for partition, offset, sent_s in self._commits.answered(event, now.s):
            if offset is not None:
                partition.confirm(offset, sent_s)
                self._registering.release_held(partition)
                # The answer may be late, and the place may have been assigned again and be full by now.
                if self.records.is_assigned(partition):
                    self._effects += self.flow.confirmed(partition)
            self._registering.leave_held(partition)
        if event.confirmed and self._registering.wait_for_commit():
            self._commit(now)

    # ---- time

    def _tick(self, event: events.Tick, now: Instant) -> None:
        if now.s >= self._tick_due_s:
            self._tick_due_s = now.s + TICK_S
            self._registering.renew_overdue(now)
            if due := self.refused.due(now.s):
                self._effects.append(Publish(due))
            if blocked := self._slots.cancel_blocked(now.s):
                self._effects.append(Cancel([blocked]))
        if event.polled and self.records.unregistered and now.s >= self._slow_due_s:
            self._slow_due_s = now.s + SLOW_TICK_S
            self._registering.register_slow(now)
        if self._commits.is_due(now.s) or self._registering.wait_for_commit():
            self._commit(now)
        self._effects += self.flow.resume(now.s)
