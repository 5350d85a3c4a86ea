"""The worker slots: which records wait for one, and which start next."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from processor.flow.blocked_calls import BlockedCalls
from processor.flow.concurrency import ConcurrencyLimit
from processor.flow.downstream_outage import Pace
from processor.flow.route_limits import RouteLimits
from processor.flow.running_calls import RunningCalls
from processor.flow.scheduler import Ordered, Scheduler, Unordered
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
        route_limits: of the routes, if some have one.
        cancel_after_s: age of calls that are cancelled if they hold nearly all slots, s; None cancels none.

    Attributes:
        waiting: how many records wait.
        running: how many calls run.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        limit: ConcurrencyLimit,
        route_limits: RouteLimits | None = None,
        cancel_after_s: float | None = None,
    ) -> None:
        self._inputs = scheduler
        self._order = scheduler if isinstance(scheduler, Ordered) else None
        self._retries = Unordered()
        self._route_limits = route_limits
        # Which of the two let others overtake the records that they hold up.
        self._overtaken = tuple(each for each in (self._order, route_limits) if each is not None)
        self._queues = (self._inputs, self._retries, *(() if route_limits is None else route_limits.queues.values()))
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
        # Their records that wait.
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
        return sum(each.behind for each in self._overtaken) if self._overtaken else 0

    def behind_of(self, place: TopicPartition) -> int:
        """Return how many of these are of one partition."""
        return sum(each.behind_of(place) for each in self._overtaken) if self._overtaken else 0

    def enter(self, entries: Sequence[Entry]) -> None:
        """Note records of one partition just polled, in their order."""
        if self._order is not None and entries and not entries[0].partition.retries:
            self._order.enter(entries)

    def leave(self, entries: Iterable[Entry]) -> None:
        """Note records that are settled or given up, and whose calls have ended."""
        if self._order is not None:
            self._order.leave(entry for entry in entries if not entry.partition.retries)

    def add(self, entries: Sequence[Entry]) -> None:
        """Take records of one partition that may start."""
        if not entries:
            return
        if self.holds(entries[0].partition):
            self._held += entries
            return
        self._queue_of(entries[0]).add(entries)
        self.waiting += len(entries)
        self._watch(entries)

    def _add_first(self, entry: Entry) -> None:
        """Take a record that has waited before."""
        if self.holds(entry.partition):
            self._held.append(entry)
            return
        self._queue_of(entry).add_first([entry])
        self.waiting += 1
        self._watch([entry])

    def _queue_of(self, entry: Entry) -> Scheduler:
        return self._retries if entry.partition.retries else self._inputs

    def _remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        removed = [entry for queue in self._queues for entry in queue.remove(which)]
        self.waiting -= len(removed)
        return removed

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
            self._add_first(entry)

    def renewed(self, entries: Iterable[Entry]) -> None:
        """Let records whose second registration is acknowledged start first, if they had waited before."""
        if not self._renewing:
            return
        again = [entry for entry in entries if entry in self._renewing and entry.state is State.HELD]
        self._renewing.difference_update(again)
        Entry.take_all(again, Step.RELEASE)
        for entry in again:
            self._add_first(entry)

    def start(self, now_s: float) -> tuple[list[Entry], list[Entry]]:
        """Start records in the free slots.

        Returns:
            The started records, and those that must be registered again before.
        """
        started: list[Entry] = []
        overdue: list[Entry] = []
        pace = self._pace
        while self.waiting and (free := min(self.free, pace.allowed(now_s)) if pace.pause_s else self.free) > 0:
            with_retries = len(self._retries) > 0 or self._route_limits is not None
            taken = self._take(free) if with_retries else self._inputs.take(free)
            if not taken:
                break  # all that wait are held up by others
            self.waiting -= len(taken)
            ready = self._in_time(taken, now_s)
            if len(ready) < len(taken):
                overdue += [entry for entry in taken if entry.is_overdue(now_s)]
            Entry.take_all(ready, Step.START)
            if self._route_limits is not None:
                self._route_limits.give(entry for entry in taken if entry.state not in RUNNING)
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
        taken = self._next(self._retries, min(free, max(0, share)))
        taken += self._next(self._inputs, free - len(taken))
        taken += self._next(self._retries, free - len(taken))
        return taken

    def _next(self, queue: Scheduler, most: int) -> list[Entry]:
        if self._route_limits is None:
            return queue.take(most)
        return self._route_limits.take(queue, most, retries=queue is self._retries)

    def ended(self, calls: Calls, answered: int, failed: int, now_s: float) -> None:
        """Note that calls have ended.

        Args:
            calls: what became of them.
            answered: how many of them weren't abandoned.
            failed: how many of them failed and may succeed later.
            now_s: the present moment.
        """
        self.running -= len(calls)
        if self._route_limits is not None:
            self._route_limits.give(entry for entry, _ in calls)
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
        return self._pace.next_s if self._pace.pause_s and self.waiting > self.behind else math.inf

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
        overdue = self._remove(lambda entry: entry.is_overdue(now_s))
        self._overdue_from_s = math.inf
        for queue in self._queues:
            self._watch(queue)
        self._renewing.update(overdue)
        return overdue

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Start no record of these partitions, which the group takes away, until some are given up."""
        self._leaving = frozenset(partitions)
        self._held += self._remove(lambda entry: entry.partition in self._leaving)

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
        self._remove(lambda entry: entry.state is State.DROPPED)
        for others in (self._late, self._renewing):
            others -= {entry for entry in others if entry.state is State.DROPPED}
        self.leave(left)
        held, self._held, self._leaving = self._held, [], frozenset()
        for entry in held:
            if entry.state is not State.DROPPED:
                self._add_first(entry)
