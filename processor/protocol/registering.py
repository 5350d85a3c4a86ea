"""When records are registered (``processor.registration``), and when their calls may start then."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from processor.protocol.commits import Commits
from processor.protocol.effects import Effect, Publish, Register, SlotControl, WriteTombstones
from processor.protocol.events import Assigned, Instant, RegistrationRefused
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import NO_WARM_UP, Partition, Recorded, WarmUp
from processor.protocol.record import REGISTERED, Entry, State, Step
from processor.protocol.results import DeadLetter, Lifetime
from wait_registry.records.wait_record import RegistrationMode

# In deferred: how old the last confirmed commit may be that shows that a partition is still this process's.
OWNERSHIP_S: Final = 5.0
_WAITS_FOR_REPORT: Final = frozenset({State.REGISTERING, State.RENEWING})
_MAY_REGISTER: Final = frozenset({State.READY, State.RUNNING})


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of the protocol, and what they mean for an assignment.

    Args:
        mode: when a record is registered.
        register_after_s: in `deferred`, a record that isn't settled so long after it was polled is registered, s.
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
        commit_interval_s: pause between commits, s.
        ttl_s: from registration to expiry, s.
        start_needs_s: what must be left of it when a call starts, s.
        hold_oversized: whether a record that can't be registered before its call is called all the same, and holds the
            offset meanwhile; else it is dead-lettered.
    """

    mode: RegistrationMode
    register_after_s: float
    uncommitted_max: int
    commit_interval_s: float
    ttl_s: float
    start_needs_s: float
    hold_oversized: bool = False

    @property
    def passes_registered(self) -> bool:
        """Whether a commit may pass a record that is registered and not settled; `off` waits for every call."""
        return self.mode is not RegistrationMode.OFF

    def lifetime(self, now: Instant) -> Lifetime:
        """Return when registrations made now expire."""
        expires_s = now.s + self.ttl_s
        return Lifetime(now.wall_ms + round(self.ttl_s * 1000), now.s, expires_s, expires_s - self.start_needs_s)

    def recorded(self, assigned: Assigned) -> Recorded:
        """Return what commits record until one covers the warm-up: what an earlier owner may have registered too."""
        bound = None if assigned.recorded_bound is None else max(self.uncommitted_max, assigned.recorded_bound)
        keeps_mode = self.mode is RegistrationMode.OFF and assigned.recorded_mode is not None
        return Recorded(bound, assigned.recorded_mode if keeps_mode else self.mode.value)

    def is_announced(self, assigned: Assigned) -> bool:
        """Return whether the last commit says what this process may do beyond it, so that the next owner knows."""
        if assigned.recorded_mode in (None, RegistrationMode.OFF):
            return self.mode is RegistrationMode.OFF
        return assigned.recorded_bound is None or assigned.recorded_bound >= self.uncommitted_max

    def warm_up(self, assigned: Assigned) -> WarmUp:
        """Return how long the warm-up of an assignment is.

        A previous owner may have registered as many records as it could have uncommitted, without committing them. What
        the log didn't have at the assignment, no previous owner can have polled.
        """
        other_mode = assigned.recorded_mode is not None and assigned.recorded_mode != RegistrationMode.OFF
        if self.mode is RegistrationMode.OFF and not other_mode:
            return NO_WARM_UP
        bound = math.inf if assigned.recorded_bound is None else max(self.uncommitted_max, assigned.recorded_bound)
        return WarmUp(bound, math.inf if assigned.end is None else assigned.end)


class Registering:
    """Registers records before their calls, or when they are slow, and again when too little of their time is left.

    Those that are registered before their calls are held in a queue for each partition, in the order of polling: so a
    commit may pass what has started, and nothing else.
    """

    def __init__(
        self, rules: Rules, records: OpenRecords, commits: Commits, slots: SlotControl, effects: list[Effect]
    ) -> None:
        self._rules = rules
        self._before_call = rules.mode is RegistrationMode.EAGER
        self._after_s = rules.register_after_s if rules.mode is RegistrationMode.DEFERRED else math.inf
        # Whether a commit may pass a registered record; then a held call waits for one.
        self._passes_registered = rules.passes_registered
        self._records = records
        self._commits = commits
        self._slots = slots
        self._effects = effects
        self._held = records.held

    def wait_for_commit(self) -> bool:
        """Return whether calls wait for nothing but a confirmed commit."""
        if not (self._held and self._passes_registered):
            return False
        return any(queue[0].warm_up and queue[0].state is State.HELD for queue in self._held.values())

    def admit(self, partition: Partition, entries: list[Entry], now: Instant) -> None:
        """Register records just polled before their calls, or let them start."""
        first = entries if self._before_call else [entry for entry in entries if entry.warm_up]
        if first:
            self._records.add(first, registered=True)
            self.register(first, now)
            self._held.setdefault(partition, deque()).extend(first)
            entries = entries[len(first) :]
        self._records.add(entries)
        Entry.take_all(entries, Step.RELEASE)
        self._slots.add(entries)

    def register(self, entries: list[Entry], now: Instant, step: Step = Step.REGISTER) -> None:
        """Register records; with the step OVERDUE again, as their time to live ran short before they could start."""
        if entries:
            lifetime = self._rules.lifetime(now)
            Entry.take_all(entries, step, lifetime)
            self._effects.append(Register(entries, lifetime))

    def register_slow(self, now: Instant) -> None:
        """Register what isn't settled some time after it was polled, if the partition is surely still ours."""
        due_s = now.s - self._after_s
        slow: list[Entry] = []
        for entry in self._records.unregistered:
            if entry.polled_s > due_s:
                break
            if entry.state not in _MAY_REGISTER:
                continue
            partition = entry.partition
            if now.s - partition.confirmed_s > OWNERSHIP_S:
                self._commits.prove(partition)
            else:
                slow.append(entry)
        self.register(slow, now)
        self._records.move(slow)

    def next_slow_s(self) -> float:
        """Return when the next record is slow, on the clock that never steps."""
        unregistered = self._records.unregistered
        return next(iter(unregistered)).polled_s + self._after_s if unregistered else math.inf

    def renew_overdue(self, now: Instant) -> None:
        """Register again what waits too long: slots may be busy, and a warm-up lasts until a commit is confirmed."""
        held = [
            entry
            for partition, queue in self._held.items()
            if self._records.is_assigned(partition) and not self._slots.holds(partition)
            for entry in queue
            if entry.is_overdue(now.s)
        ]
        self.register(held + self._slots.take_overdue(now.s), now, Step.OVERDUE)

    def registered(self, entries: Sequence[Entry]) -> None:
        """Take acknowledged wait records: commits may pass them, and their calls may start."""
        settled: list[Entry] = []
        touched: dict[Partition, None] = {}
        passes_registered, held = self._passes_registered, State.HELD
        for entry in entries:
            if not entry.take(REGISTERED):
                continue
            partition = entry.partition
            if passes_registered:
                partition.make_safe(entry.number)
            state = entry.state
            if state is held:
                touched[partition] = None
            elif state is State.READY_REGISTERED:
                self._slots.reported(entry)
            elif state is State.SETTLED:
                settled.append(entry)
        if settled:
            self.settle(settled)
        if touched:
            self._slots.renewed(entries)
        for partition in touched:
            self.release_held(partition)
            self.leave_held(partition)

    def refused(self, event: RegistrationRefused, now: Instant) -> None:
        """Take the refusal of a wait record: its record stays without a registration."""
        entry = event.entry
        if not entry.refuse():
            return
        if entry.state is State.POLLED:
            if self._rules.hold_oversized:
                entry.refuse()  # it is called all the same
                self._slots.add([entry])
            else:
                self._records.fail(entry, DeadLetter("unregistrable", event.error, ours=True))
                self._effects.append(Publish([entry]))
            self.release_held(entry.partition)
        elif entry.state is State.READY_UNREGISTRABLE:
            self._slots.reported(entry)
        elif entry.state is State.SETTLED:
            self.settle([entry])

    def settle(self, entries: list[Entry]) -> None:
        """Let commits pass records that have an outcome, end the registrations of those that have one, and forget all.

        One without a registration may have held up those behind it.
        """
        self._records.settle(entries)
        self._slots.leave(entries)
        registered = [entry for entry in entries if entry.lifetime is not None]
        if registered:
            self._effects.append(WriteTombstones(registered))
        if self._held and len(registered) < len(entries):
            for partition in {entry.partition for entry in entries if entry.lifetime is None}:
                self.release_held(partition)

    def close(self, entries: list[Entry]) -> None:
        """Forget records that are given up and have no call."""
        self._records.close(entries)
        self._slots.leave(entries)

    def release_held(self, partition: Partition) -> None:
        """Let calls start, in the order of polling.

        The record of each is registered, and every one before it is registered or settled; in the warm-up, a confirmed
        commit covers it too. In `off`, where commits wait for calls, no record before it waits for its registration.
        """
        queue = self._held.get(partition)
        if queue is None:
            return
        ready: list[Entry] = []
        committable, confirmed = partition.committable, partition.confirmed
        passes_registered, held = self._passes_registered, State.HELD
        while queue and (entry := queue[0]).state not in _WAITS_FOR_REPORT:
            if entry.state is held:
                if passes_registered and entry.offset >= (confirmed if entry.warm_up else committable):
                    break
                ready.append(entry)
            queue.popleft()
        Entry.take_all(ready, Step.RELEASE)
        if not queue:
            del self._held[partition]
        self._slots.add(ready)

    def leave_held(self, partition: Partition) -> None:
        """Let the held records of a partition that was given up expire, unless the answer of a commit is awaited.

        If none shows that a commit covers them, the next owner may call them too; whatever kills its process would be
        called a third time.
        """
        if self._records.is_assigned(partition) or self._commits.may_cover_more(partition):
            return
        abandoned = [entry for entry in self._held.get(partition, ()) if entry.state is State.HELD]
        Entry.take_all(abandoned, Step.ABANDON)
        self.close(abandoned)
        self.release_held(partition)
