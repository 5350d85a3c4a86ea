"""The worker slots: which records wait for one, and which start next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from processor.flow.blocked_calls import BlockedCalls
from processor.flow.bulkheads import Bulkheads, BulkheadScheduler
from processor.flow.concurrency import ConcurrencyLimit
from processor.flow.running_calls import RunningCalls
from processor.flow.scheduler import Scheduler, Unordered
from processor.flow.start_rate import Pace
from processor.protocol.events import Calls, Instant, SlotsBlocked
from processor.protocol.partition import Partition
from processor.protocol.record import RUNNING, Entry, State, Step
from wait_registry.records.topics import TopicPartition

# Of the slots, this part is for records of retry topics while others wait.
RETRIES_SHARE: Final = 4


class Slots:
    """Starts records while slots are free, unless too little of their time to live is left.

    Records of retry topics get a quarter of the slots, and what the others leave free. They have no order (O1).

    Args:
        scheduler: says which record of the other topics is next.
        limit: how many calls may run.
        bulkheads: of the routes, if some have one.
        cancel_after_s: age of calls that are cancelled if they hold nearly all slots, s; None cancels none.

    Attributes:
        ordered: whether records wait for earlier ones.
        waiting: how many records wait.
        running: how many calls run.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        limit: ConcurrencyLimit,
        bulkheads: Bulkheads | None = None,
        cancel_after_s: float | None = None,
    ) -> None:
        self._inputs = scheduler if bulkheads is None else BulkheadScheduler(scheduler, bulkheads)
        self._retries: Scheduler = Unordered() if bulkheads is None else BulkheadScheduler(Unordered(), bulkheads)
        self._bulkheads = bulkheads
        self._overtaking = scheduler.ordered or bulkheads is not None
        self.ordered = scheduler.ordered
        self._limit = limit
        self._cancelled = None if cancel_after_s is None else BlockedCalls(cancel_after_s)
        calls = RunningCalls() if limit.learns else None
        self._calls = calls if self._cancelled is None else self._cancelled.calls
        self._pace = Pace()
        self.waiting = 0
        self.running = 0
        self._running_retries = 0
        self._blocked = 0
        # Registered again after they had waited for a slot.
        self._renewing: set[Entry] = set()
        # Too little time was left when a slot was free, and their first registration isn't acknowledged.
        self._late: set[Entry] = set()
        self._overdue_from_s = math.inf
        # The partitions that the group takes away.
        self._leaving: frozenset[Partition] = frozenset()
        # Their records that would have started since.
        self._held: list[Entry] = []

    @property
    def limit(self) -> int:
        """How many slots there are now."""
        return self._limit.current

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._limit.current - self.running - self._blocked

    @property
    def behind(self) -> int:
        """How many of the records that wait can't start, because of others."""
        if not self._overtaking:
            return 0
        return sum(len(queue) - queue.startable for queue in (self._inputs, self._retries))

    def behind_of(self, place: TopicPartition) -> int:
        """Return how many of these are of one partition."""
        return self._inputs.behind_of(place) + self._retries.behind_of(place) if self._overtaking else 0

    def enter(self, entries: Sequence[Entry]) -> None:
        """Note records of one partition just polled, in their order."""
        if entries and self.ordered:
            self._queue_of(entries[0]).enter(entries)

    def leave(self, entries: Iterable[Entry]) -> None:
        """Note records that are settled or given up, and whose calls have ended."""
        if self.ordered:
            self._inputs.leave(entry for entry in entries if not entry.partition.retries)

    def add(self, entries: Sequence[Entry]) -> None:
        """Take records of one partition that may start."""
        if entries:
            self._queue_of(entries[0]).add(entries)
            self.waiting += len(entries)
            self._watch(entries)

    def _queue_of(self, entry: Entry) -> Scheduler:
        return self._retries if entry.partition.retries else self._inputs

    def _watch(self, entries: Iterable[Entry]) -> None:
        """Note until when the first of the records that wait must start."""
        first_s = self._overdue_from_s
        for entry in entries:
            lifetime = entry.lifetime
            if lifetime is not None and lifetime.start_by_s < first_s:
                first_s = lifetime.start_by_s
        self._overdue_from_s = first_s

    def reported(self, entry: Entry) -> None:
        """Note that the registration of a record that waits is acknowledged or refused."""
        self._watch([entry])
        if entry in self._late:
            self._late.remove(entry)
            self._queue_of(entry).add_first([entry])
            self.waiting += 1

    def renewed(self, entries: Iterable[Entry]) -> None:
        """Let records whose second registration is acknowledged start first, if they had waited before."""
        if not self._renewing:
            return
        again = [entry for entry in entries if entry in self._renewing and entry.state is State.HELD]
        self._renewing.difference_update(again)
        Entry.take_all(again, Step.RELEASE)
        self._watch(again)
        for entry in again:
            self._queue_of(entry).add_first([entry])
        self.waiting += len(again)

    def start(self, now_s: float) -> tuple[list[Entry], list[Entry]]:
        """Start records in the free slots.

        Returns:
            The started records, and those that must be registered again before.
        """
        started: list[Entry] = []
        overdue: list[Entry] = []
        pace = self._pace
        while self.waiting and (free := min(self.free, pace.allowed(now_s)) if pace.pause_s else self.free) > 0:
            with_retries = len(self._retries) > 0
            taken = self._take(free) if with_retries else self._inputs.take(free)
            if not taken:
                break  # all that wait are held up by others
            self.waiting -= len(taken)
            all_taken = taken
            if self._leaving:
                self._held += [entry for entry in taken if entry.partition in self._leaving]
                taken = [entry for entry in taken if entry.partition not in self._leaving]
            ready = self._in_time(taken, now_s)
            if len(ready) < len(taken):
                overdue += [entry for entry in taken if entry.is_overdue(now_s)]
            Entry.take_all(ready, Step.START)
            if self._bulkheads is not None:
                self._bulkheads.give(entry for entry in all_taken if entry.state not in RUNNING)
            self.running += len(ready)
            if self._calls is not None:
                self._calls.started(ready, self.running, now_s)
            if with_retries:
                self._running_retries += sum(entry.partition.retries for entry in ready)
            if pace.pause_s and ready:
                pace.started(now_s)
            started += ready
        self._renewing.update(overdue)
        return started, overdue

    def _take(self, free: int) -> list[Entry]:
        share = max(1, self._limit.current // RETRIES_SHARE) - self._running_retries
        taken = self._retries.take(min(free, max(0, share)))
        taken += self._inputs.take(free - len(taken))
        taken += self._retries.take(free - len(taken))
        return taken

    def ended(self, calls: Calls, answered: int, failed: int, now_s: float) -> None:
        """Note that calls have ended.

        Args:
            calls: what became of them.
            answered: how many of them weren't abandoned.
            failed: how many of them failed and may succeed later.
            now_s: the present moment.
        """
        self.running -= len(calls)
        if self._bulkheads is not None:
            self._bulkheads.give(entry for entry, _ in calls)
        if self._running_retries:
            self._running_retries -= sum(entry.partition.retries for entry, _ in calls)
        self._pace.ended(answered, failed, now_s)
        if self._calls is not None:
            self._limit.learn(self._calls.ended(calls, now_s), self.running, now_s)

    @property
    def start_pause_s(self) -> float:
        """The pause between the starts of two calls, s."""
        return self._pace.pause_s

    @property
    def next_start_s(self) -> float:
        """When the next record may start although slots are free, on the clock that never steps."""
        startable = self._inputs.startable or self._retries.startable
        return self._pace.next_s if self._pace.pause_s and startable else math.inf

    def _in_time(self, taken: list[Entry], now_s: float) -> list[Entry]:
        return [
            entry
            for entry in taken
            if (lifetime := entry.lifetime) is None
            or lifetime.start_by_s >= now_s
            or not self._lacks_time(entry, now_s)
        ]

    def _lacks_time(self, entry: Entry, now_s: float) -> bool:
        """Return whether a record of which little time to live is left can't start."""
        if entry.state is State.READY_REGISTERING:
            self._late.add(entry)
            return True
        return entry.is_overdue(now_s)

    def take_overdue(self, now_s: float) -> list[Entry]:
        """Return the waiting records that must be registered again: all slots may be busy for long.

        Those of partitions that the group takes away may be the next owner's soon.
        """
        if self._overdue_from_s >= now_s:
            return []
        overdue = [
            entry
            for queue in (self._inputs, self._retries)
            for entry in queue.remove(lambda entry: entry.is_overdue(now_s) and entry.partition not in self._leaving)
        ]
        self._overdue_from_s = math.inf
        self._watch(self._inputs)
        self._watch(self._retries)
        self.waiting -= len(overdue)
        self._renewing.update(overdue)
        return overdue

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Start no record of these partitions, which the group takes away, until some are given up."""
        self._leaving = frozenset(partitions)

    def holds(self, partition: Partition) -> bool:
        """Return whether the group takes a partition away."""
        return partition in self._leaving

    def set_blocked(self, event: SlotsBlocked, now: Instant) -> None:
        """Note how many calls have an outcome and keep their slot."""
        self._blocked = event.blocked

    def cancel_blocked(self, now_s: float) -> Entry | None:
        """Return the call to cancel now, because nearly all slots are held by calls that have run for long."""
        return None if self._cancelled is None else self._cancelled.choose(self.limit, self._blocked, now_s)

    def with_cancelled(self, calls: Calls, now_s: float) -> Calls:
        """Return ended calls, with a result for the one that was cancelled because it had held its slot for long."""
        return calls if self._cancelled is None else self._cancelled.ended(calls, now_s)

    @property
    def blocked_cancelled(self) -> int:
        """How many calls were cancelled because nearly all slots were blocked."""
        return 0 if self._cancelled is None else self._cancelled.cancelled

    def give_up(self, left: Iterable[Entry]) -> None:
        """Forget the waiting records that are the next owner's now, and let the others start that were held.

        Args:
            left: those that are the next owner's and whose calls have ended.
        """
        for queue in (self._inputs, self._retries):
            self.waiting -= len(queue.remove(lambda entry: entry.state is State.DROPPED))
        for others in (self._late, self._renewing):
            others -= {entry for entry in others if entry.state is State.DROPPED}
        self.leave(left)
        held, self._held, self._leaving = self._held, [], frozenset()
        for entry in held:
            if entry.state is not State.DROPPED:
                self._queue_of(entry).add_first([entry])
                self.waiting += 1
