"""The worker slots: which records wait for one, and which start next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from processor.flow.bulkheads import Bulkheads, BulkheadScheduler
from processor.flow.concurrency import ConcurrencyLimit
from processor.flow.running_calls import RunningCalls
from processor.flow.scheduler import Scheduler, Unordered
from processor.flow.start_rate import Pace
from processor.protocol.events import Result
from processor.protocol.partition import Partition
from processor.protocol.record import RUNNING, Entry, State, Step, take_all
from wait_registry.records.topics import TopicPartition

# Of the slots, this part is for records of retry topics while others wait.
RETRIES_SHARE: Final = 4
_MAY_RENEW: Final = frozenset({State.HELD, State.READY_REGISTERED})


class Slots:
    """Starts records while slots are free, unless too little of their time to live is left.

    Records of retry topics get a quarter of the slots, and what the others leave free. They have no order (O1).

    Args:
        scheduler: says which record of the other topics is next.
        limit: how many calls may run.
        calls: notes since when each call runs, if the limit or another part needs it.
        bulkheads: of the routes, if some have one.

    Attributes:
        ordered: whether records wait for earlier ones.
        waiting: how many records wait.
        running: how many calls run.
        blocked: how many calls have an outcome and keep their slot.
        leaving: the partitions that the group takes away.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        limit: ConcurrencyLimit,
        calls: RunningCalls | None = None,
        bulkheads: Bulkheads | None = None,
    ) -> None:
        self._inputs = scheduler if bulkheads is None else BulkheadScheduler(scheduler, bulkheads)
        self._retries: Scheduler = Unordered() if bulkheads is None else BulkheadScheduler(Unordered(), bulkheads)
        self._bulkheads = bulkheads
        self._overtaking = scheduler.ordered or bulkheads is not None
        self.ordered = scheduler.ordered
        self._limit = limit
        self._calls = RunningCalls() if calls is None and limit.learns else calls
        self._pace = Pace()
        self.waiting = 0
        self.running = 0
        self._running_retries = 0
        self.blocked = 0
        # Registered again after they had waited for a slot.
        self._renewing: set[Entry] = set()
        # Too little time was left when a slot was free, and their first registration isn't acknowledged.
        self._late: set[Entry] = set()
        self._overdue_from_s = math.inf
        self.leaving: frozenset[Partition] = frozenset()
        # Their records that would have started since.
        self._held: list[Entry] = []

    @property
    def limit(self) -> int:
        """How many slots there are now."""
        return self._limit.current

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._limit.current - self.running - self.blocked

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
        take_all(again, Step.RELEASE)
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
            if self.leaving:
                self._held += [entry for entry in taken if entry.partition in self.leaving]
                taken = [entry for entry in taken if entry.partition not in self.leaving]
            ready = [
                entry
                for entry in taken
                if (lifetime := entry.lifetime) is None or lifetime.start_by_s >= now_s or not self._lacks_time(entry)
            ]
            if len(ready) < len(taken):
                overdue += [entry for entry in taken if is_overdue(entry, now_s)]
            take_all(ready, Step.START)
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

    def ended(self, calls: Sequence[tuple[Entry, Result | None]], answered: int, failed: int, now_s: float) -> None:
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

    def _lacks_time(self, entry: Entry) -> bool:
        """Return whether a record of which little time to live is left can't start."""
        if entry.state is State.READY_REGISTERING:
            self._late.add(entry)
            return True
        return entry.state in _MAY_RENEW

    def take_overdue(self, now_s: float) -> list[Entry]:
        """Return the waiting records that must be registered again: all slots may be busy for long.

        Those of partitions that the group takes away may be the next owner's soon.
        """
        if self._overdue_from_s >= now_s:
            return []
        overdue = [
            entry
            for queue in (self._inputs, self._retries)
            for entry in queue.remove(lambda entry: is_overdue(entry, now_s) and entry.partition not in self.leaving)
        ]
        self._overdue_from_s = math.inf
        self._watch(self._inputs)
        self._watch(self._retries)
        self.waiting -= len(overdue)
        self._renewing.update(overdue)
        return overdue

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Start no record of these partitions until `let_go`."""
        self.leaving = frozenset(partitions)

    def let_go(self) -> None:
        """Let the records start that were held and aren't the next owner's."""
        held, self._held, self.leaving = self._held, [], frozenset()
        for entry in held:
            if entry.state is not State.DROPPED:
                self._queue_of(entry).add_first([entry])
                self.waiting += 1

    def drop(self) -> None:
        """Forget the waiting records that are the next owner's now."""
        for queue in (self._inputs, self._retries):
            self.waiting -= len(queue.remove(lambda entry: entry.state is State.DROPPED))
        for others in (self._late, self._renewing):
            others -= {entry for entry in others if entry.state is State.DROPPED}


def is_overdue(entry: Entry, now_s: float) -> bool:
    """Return whether too little is left of a registered record's time to live to start its call."""
    return entry.state in _MAY_RENEW and entry.lifetime is not None and entry.lifetime.start_by_s < now_s
