"""The protocol of the processor: register, commit, call, settle.

A pure state machine: it owns the state of every record and partition, and does no I/O. The shell polls, writes, commits
and calls handlers, turns what comes of it into events, and executes the effects that `Engine.step` returns, in order.

The rules, in the order of a record's way:

1. A record is registered when it is polled (eager), when it isn't settled some time later (deferred), or never (off).
   The first records of an assignment are registered at once in eager and deferred: a previous owner may have registered
   them without committing them.
2. A commit passes a record when it is registered or settled, and every earlier record of its partition is.
3. In eager, a call starts when its record is registered. In the warm-up, it starts when a confirmed commit covers it.
4. A registered record gets its tombstone when its outcome is known, its wait record is acknowledged, and its dead
   letter too, if it has one.
5. When a partition is given up, the next owner gets what no commit can have passed and hasn't started.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from processor.dispatch.concurrency import ConcurrencyLimit
from processor.dispatch.prefetch import Prefetch
from processor.dispatch.scheduler import Scheduler
from processor.events import (
    Assigned,
    CallsEnded,
    Cancel,
    Commit,
    CommitAnswered,
    DeadLetter,
    DeadLettersAcknowledged,
    Draining,
    Effect,
    Event,
    Instant,
    Lifetime,
    Lost,
    Pause,
    Polled,
    Register,
    Registered,
    RegistrationRefused,
    Release,
    Resume,
    Revoking,
    SlotsBlocked,
    Start,
    Tick,
    WriteDeadLetters,
    WriteTombstones,
)
from processor.lifecycle import IN_FLIGHT, RUNNING, UNSTARTED, Entry, State, Step
from processor.partition import Partition, Recorded
from processor.registration.policy import RegistrationPolicy
from wait_registry.records.topics import TopicPartition

# A commit whose answer is lost must not stop all further commits.
ANSWER_LIMIT_S: Final = 30.0
# In deferred: how old the last confirmed commit may be that shows that a partition is still this process's.
OWNERSHIP_S: Final = 5.0
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 0.02
# Records that are taken without room, because a member of the group must poll, before all partitions are paused.
PAUSE_AFTER: Final = 4
RESUME_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """The engine's numbers.

    Args:
        policy: when a record is registered.
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
        commit_interval_s: pause between commits, s.
        ttl_s: from registration to expiry, s.
        start_needs_s: what must be left of it when a call starts, s.
    """

    policy: RegistrationPolicy
    uncommitted_max: int
    commit_interval_s: float
    ttl_s: float
    start_needs_s: float


class Engine:
    """Register, commit, call, settle. Owns the state of every record.

    Args:
        rules: the numbers.
        scheduler: which record starts next; empty.
        limit: how many calls may run.
        prefetch: how many records may be open.
    """

    def __init__(self, rules: Rules, scheduler: Scheduler, limit: ConcurrencyLimit, prefetch: Prefetch) -> None:
        self._rules = rules
        self._policy = rules.policy
        self._scheduler = scheduler
        self._limit = limit
        self.prefetch = prefetch
        self.partitions: dict[TopicPartition, Partition] = {}
        # Every open record is in one of the two, in the order of polling: not registered, and the others.
        self._unregistered: dict[Entry, None] = {}
        self._others: dict[Entry, None] = {}
        # Registered before their calls, in the order of polling: a commit may pass what has started, and nothing else.
        self._queues: dict[Partition, deque[Entry]] = {}
        # Registered again after they had waited for a worker slot.
        self._renewing: set[Entry] = set()
        self._size = 0
        self._settled = 0
        self.running = 0
        self._blocked = 0
        self._committing: dict[Partition, int] = {}
        # The last commits of partitions that were given up.
        self._releasing: dict[Partition, int] = {}
        self._commit_sent_s = -math.inf
        self._commit_due_s = -math.inf
        self._commit_not_before_s = -math.inf
        self._commit_now = False
        # In deferred: partitions whose records wait for a commit that shows that they are still this process's.
        self._unproved: set[Partition] = set()
        self._full: set[TopicPartition] = set()
        self._paused = False
        self._taken_without_room = 0
        self._tick_due_s = -math.inf
        self._slow_due_s = -math.inf
        self._overdue_from_s = math.inf
        self.draining = False
        self._effects: list[Effect] = []
        self._steps: dict[type, Callable[[Any, Instant], None]] = {
            Polled: self._polled,
            Registered: self._registered,
            RegistrationRefused: self._registration_refused,
            CommitAnswered: self._commit_answered,
            CallsEnded: self._calls_ended,
            DeadLettersAcknowledged: self._dead_letters_acknowledged,
            Assigned: self._assigned,
            Revoking: self._revoking,
            Lost: self._lost,
            SlotsBlocked: self._slots_blocked,
            Tick: self._tick,
            Draining: self._drain,
        }

    def step(self, event: Event, now: Instant) -> list[Effect]:
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
        if self._scheduler:
            self._start(now)
        effects = self._effects
        self._effects = []
        return effects

    # ---- what the shell and the telemetry ask

    @property
    def open(self) -> int:
        """How many records were polled and have neither an outcome nor another owner."""
        return len(self._unregistered) + len(self._others)

    @property
    def size(self) -> int:
        """Keys, values and headers of the open records, bytes."""
        return self._size

    @property
    def waiting(self) -> int:
        """How many records wait for a worker slot."""
        return len(self._scheduler)

    @property
    def paused(self) -> bool:
        """Whether all partitions are paused, because there is no room."""
        return self._paused

    def room(self) -> int:
        """Return how many records may be polled now."""
        if self.draining or self._paused:
            return 0
        most = max((p.uncommitted for p in self.partitions.values() if p.place not in self._full), default=0)
        return max(0, min(self.prefetch.capacity(self.open, self._size), self._rules.uncommitted_max - most))

    def in_flight(self, places: Iterable[TopicPartition] | None = None) -> int:
        """Return how many wait records aren't acknowledged, of all partitions or of some."""
        wanted = None if places is None else set(places)
        return sum(
            entry.state in IN_FLIGHT and (wanted is None or entry.partition.place in wanted) for entry in self._others
        )

    def registering_s(self, now_s: float) -> float:
        """Return for how long the oldest wait record has waited for its acknowledgment, s; 0 without; any thread."""
        waiting = [
            entry.lifetime.registered_s for entry in list(self._others) if entry.lifetime and entry.state in IN_FLIGHT
        ]
        return max(0.0, now_s - min(waiting)) if waiting else 0.0

    def unsettled(self) -> int:
        """Return how many records an orderly stop must settle, or start, before it gives the partitions up.

        These are the records that aren't registered, which another process would handle again, and registered ones
        whose calls haven't started.
        """
        return len(self._unregistered) + sum(entry.state in _REGISTERED_WAITING for entry in self._others)

    def wake_s(self, now_s: float) -> float:
        """Return in how many seconds the next `Tick` is due, at the latest."""
        due_s = self._tick_due_s
        if self._unregistered and not math.isinf(self._policy.after_s):
            due_s = min(due_s, next(iter(self._unregistered)).polled_s + self._policy.after_s)
        return max(0.0, due_s - now_s)

    # ---- records come

    def _polled(self, event: Polled, now: Instant) -> None:
        partition = self.partitions[event.place]
        has_room = self.prefetch.capacity(self.open, self._size) > 0
        self._taken_without_room = 0 if has_room else self._taken_without_room + len(event.offsets)
        number = partition.polled
        partition.add(array("q", event.offsets))
        size = sum(event.sizes)
        self._size += size
        self.prefetch.observe_size(len(event.offsets), size)
        entries = self._entries(partition, number, event, now)
        if event.malformed:
            entries = self._pass_malformed_on(entries, event)
        self._admit(partition, entries, now)
        if 2 * partition.uncommitted >= self._rules.uncommitted_max:
            self._commit_now = True
            if partition.uncommitted >= self._rules.uncommitted_max and event.place not in self._full:
                self._full.add(event.place)
                self._effects.append(Pause([event.place]))
        if self._taken_without_room >= PAUSE_AFTER and not self._paused:
            self._paused = True
            self._effects.append(Pause(list(self.partitions)))

    def _entries(self, partition: Partition, number: int, event: Polled, now: Instant) -> list[Entry]:
        polled_s, offsets = now.s, event.offsets
        if partition.in_warm_up(number, offsets[0]):
            numbers = range(number, number + len(offsets))
            return [
                Entry(partition, n, offset, record, size, polled_s, partition.in_warm_up(n, offset))
                for n, offset, record, size in zip(numbers, offsets, event.records, event.sizes, strict=True)
            ]
        return [
            Entry(partition, n, offset, record, size, polled_s, False)
            for n, (offset, record, size) in enumerate(zip(offsets, event.records, event.sizes, strict=True), number)
        ]

    def _pass_malformed_on(self, entries: list[Entry], event: Polled) -> list[Entry]:
        malformed = [entry for entry in entries if entry.offset in event.malformed]
        for entry in malformed:
            self._others[entry] = None
            self._fail(entry, DeadLetter("malformed", event.malformed[entry.offset], ours=True))
        self._effects.append(WriteDeadLetters(malformed))
        return [entry for entry in entries if entry.offset not in event.malformed]

    def _admit(self, partition: Partition, entries: list[Entry], now: Instant) -> None:
        """Register records before their calls, or let them start."""
        first = entries if self._policy.before_call else [entry for entry in entries if entry.warm_up]
        if first:
            self._register(first, now)
            self._queues.setdefault(partition, deque()).extend(first)
            entries = entries[len(first) :]
        for entry in entries:
            entry.take(Step.RELEASE)
        self._unregistered.update(dict.fromkeys(entries))
        self._scheduler.add(entries)

    # ---- registration

    def _register(self, entries: list[Entry], now: Instant) -> None:
        if not entries:
            return
        lifetime = self._lifetime(now)
        register = Step.REGISTER
        for entry in entries:
            entry.take(register)
            entry.lifetime = lifetime
        self._others.update(dict.fromkeys(entries))
        self._effects.append(Register(entries, lifetime))

    def _register_slow(self, now: Instant) -> None:
        """Register what isn't settled some time after it was polled, if the partition is surely still ours."""
        due_s = now.s - self._policy.after_s
        slow: list[Entry] = []
        for entry in self._unregistered:
            if entry.polled_s > due_s:
                break
            if entry.state not in _MAY_REGISTER:
                continue
            partition = entry.partition
            if now.s - partition.confirmed_s > OWNERSHIP_S:
                self._unproved.add(partition)
            else:
                slow.append(entry)
        for entry in slow:
            del self._unregistered[entry]
        self._register(slow, now)

    def _registered(self, event: Registered, now: Instant) -> None:
        tombstones: list[Entry] = []
        touched: dict[Partition, None] = {}
        for entry in event.entries:
            if not entry.take(Step.REGISTERED):
                continue
            partition = entry.partition
            partition.make_safe(entry.number)
            state = entry.state
            if state is State.HELD:
                touched[partition] = None
            elif state is State.READY_REGISTERED and entry.lifetime is not None:
                self._overdue_from_s = min(self._overdue_from_s, entry.lifetime.start_by_s)
            elif state is State.SETTLED:
                self._close(entry)
                tombstones.append(entry)
        for partition in touched:
            self._start_renewed([entry for entry in event.entries if entry.partition is partition])
            self._release_queued(partition)
            self._leave_held(partition)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))
        if self._waits_for_commit():
            self._commit(now)

    def _start_renewed(self, entries: list[Entry]) -> None:
        """Let renewed records start that had waited for a worker slot before."""
        renewed = [entry for entry in entries if entry in self._renewing and entry.state is State.HELD]
        for entry in renewed:
            self._renewing.remove(entry)
            entry.take(Step.RELEASE)
        self._make_ready(renewed, first=True)

    def _release_queued(self, partition: Partition) -> None:
        """Let calls of registered records start, in the order of polling."""
        queue = self._queues.get(partition)
        if queue is None:
            return
        ready: list[Entry] = []
        committable, confirmed = partition.committable, partition.confirmed
        while queue and queue[0].state not in _WAITS_FOR_REPORT:
            entry = queue[0]
            if entry.state is State.HELD:
                if entry.offset >= (confirmed if entry.warm_up else committable):
                    break
                entry.take(Step.RELEASE)
                ready.append(entry)
            queue.popleft()
        if not queue:
            del self._queues[partition]
        self._make_ready(ready)

    def _waits_for_commit(self) -> bool:
        """Return whether calls wait for nothing but a confirmed commit."""
        return any(queue[0].warm_up and queue[0].state is State.HELD for queue in self._queues.values())

    def _is_assigned(self, partition: Partition) -> bool:
        return self.partitions.get(partition.place) is partition

    def _registration_refused(self, event: RegistrationRefused, now: Instant) -> None:
        entry = event.entry
        if not entry.take(Step.REFUSE):
            return
        if entry.state is State.POLLED:
            self._fail(entry, DeadLetter("unregistrable", event.error, ours=True))
            self._effects.append(WriteDeadLetters([entry]))
        elif entry.state is State.SETTLED:
            entry.partition.make_safe(entry.number)
            self._close(entry)

    def _lifetime(self, now: Instant) -> Lifetime:
        ttl_s = self._rules.ttl_s
        return Lifetime(
            now.wall_ms + round(ttl_s * 1000), now.s, now.s + ttl_s, now.s + ttl_s - self._rules.start_needs_s
        )

    # ---- calls

    def _make_ready(self, entries: Sequence[Entry], first: bool = False) -> None:
        for entry in entries:
            if entry.lifetime is not None and entry.lifetime.start_by_s < self._overdue_from_s:
                self._overdue_from_s = entry.lifetime.start_by_s
        if first:
            self._scheduler.add_first(entries)
        else:
            self._scheduler.add(entries)

    def _start(self, now: Instant) -> None:
        started: list[Entry] = []
        overdue: list[Entry] = []
        start = Step.START
        while (free := self._limit.current - self.running - self._blocked - len(started)) > 0:
            taken = self._scheduler.take(free)
            if not taken:
                break
            for entry in taken:
                if _is_overdue(entry, now.s):
                    overdue.append(entry)
                else:
                    entry.take(start)
                    started.append(entry)
        self._renewing.update(overdue)
        self._renew(overdue, now)
        if started:
            self.running += len(started)
            self._effects.append(Start(started))

    def _renew(self, entries: list[Entry], now: Instant) -> None:
        """Register records again whose time to live ran short before they could start."""
        if not entries:
            return
        lifetime = self._lifetime(now)
        for entry in entries:
            entry.take(Step.OVERDUE)
            entry.lifetime = lifetime
        self._effects.append(Register(entries, lifetime))

    def _renew_overdue(self, now: Instant) -> None:
        # All slots may be busy, and a warm-up lasts for as long as no commit is confirmed.
        held = [
            entry
            for partition, queue in self._queues.items()
            if self._is_assigned(partition)
            for entry in queue
            if _is_overdue(entry, now.s)
        ]
        waiting: list[Entry] = []
        if self._overdue_from_s < now.s:
            waiting = self._scheduler.remove(lambda entry: _is_overdue(entry, now.s))
            self._overdue_from_s = min(
                (entry.lifetime.start_by_s for entry in self._scheduler if entry.lifetime is not None),
                default=math.inf,
            )
        self._renewing.update(waiting)
        self._renew(held + waiting, now)

    def _calls_ended(self, event: CallsEnded, now: Instant) -> None:
        tombstones: list[Entry] = []
        letters: list[Entry] = []
        self.running -= len(event.calls)
        for entry, outcome in event.calls:
            registered = entry.state is State.RUNNING_REGISTERED
            if outcome is None:
                if entry.take(Step.ABANDON):
                    self._close(entry)
            elif outcome.__class__ is DeadLetter:
                if self._fail(entry, outcome):
                    letters.append(entry)
            elif entry.take(Step.SUCCEED):
                entry.outcome = outcome
                if entry.state is State.SETTLED:
                    entry.partition.make_safe(entry.number)
                    self._close(entry)
                    self._settled += 1
                    if registered:
                        tombstones.append(entry)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))
        if letters:
            self._effects.append(WriteDeadLetters(letters))

    def _fail(self, entry: Entry, letter: DeadLetter) -> bool:
        if not entry.take(Step.FAIL):
            return False
        entry.outcome = letter
        if self._unregistered.pop(entry, _MISSING) is not _MISSING:
            self._others[entry] = None
        return True

    def _dead_letters_acknowledged(self, event: DeadLettersAcknowledged, now: Instant) -> None:
        tombstones: list[Entry] = []
        for entry in event.entries:
            registered = entry.state is State.LETTER_REGISTERED
            entry.take(Step.LETTER_ACKNOWLEDGED)
            if entry.state is State.SETTLED:
                entry.partition.make_safe(entry.number)
                self._close(entry)
                self._settled += 1
                if registered:
                    tombstones.append(entry)
                else:
                    self._release_queued(entry.partition)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))

    def _close(self, entry: Entry) -> None:
        """Forget a record that is settled or dropped."""
        self._size -= entry.size
        if self._unregistered.pop(entry, _MISSING) is _MISSING:
            del self._others[entry]

    def _slots_blocked(self, event: SlotsBlocked, now: Instant) -> None:
        self._blocked = event.blocked

    # ---- commits

    def _commit(self, now: Instant) -> None:
        """Request the committable offsets that are ahead of the confirmed ones; one commit is in flight at most."""
        waits = self._committing and now.s - self._commit_sent_s < ANSWER_LIMIT_S
        if waits or now.s < self._commit_not_before_s:
            return
        self._commit_now = False
        self._commit_due_s = now.s + self._rules.commit_interval_s
        targets = {
            partition: partition.request()
            for partition in self.partitions.values()
            if partition.committable > partition.confirmed or partition in self._unproved
        }
        unanswered = [partition for partition in self._committing if partition not in targets]
        self._committing = targets
        if targets:
            self._commit_sent_s = now.s
            self._effects.append(Commit(*self._commit_of(targets)))
        for partition in unanswered:
            self._leave_held(partition)

    def _commit_of(
        self, targets: dict[Partition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, Recorded]]:
        own = Recorded(self._rules.uncommitted_max, self._policy.mode.value)
        recorded = {p.place: p.recorded if target < p.warm_up_end else own for p, target in targets.items()}
        return {partition.place: target for partition, target in targets.items()}, recorded

    def _commit_answered(self, event: CommitAnswered, now: Instant) -> None:
        for requests in (self._committing, self._releasing):
            for partition, target in list(requests.items()):
                # An answer with another offset belongs to an earlier commit.
                if event.confirmed.get(partition.place) == target:
                    del requests[partition]
                    self._confirm(partition, target, now)
                elif partition.place in event.failed:
                    del requests[partition]
                    self._commit_not_before_s = now.s + self._rules.commit_interval_s
                else:
                    continue
                self._leave_held(partition)
        if event.confirmed and self._waits_for_commit():
            self._commit(now)

    def _leave_held(self, partition: Partition) -> None:
        """Let the held records of a partition that was given up expire, unless another commit may cover them.

        Nothing shows that a commit covers them, and a call might kill this process as it killed the last one.
        """
        if self._is_assigned(partition) or partition in self._committing or partition in self._releasing:
            return
        for entry in self._queues.get(partition, ()):
            if entry.state is State.HELD:
                entry.take(Step.ABANDON)
                self._close(entry)
        self._release_queued(partition)

    def _confirm(self, partition: Partition, offset: int, now: Instant) -> None:
        partition.confirm(offset, now.s)
        self._unproved.discard(partition)
        self._release_queued(partition)
        # The answer may be late, and the place may have been assigned again and be full by now.
        has_room = 2 * partition.uncommitted <= self._rules.uncommitted_max
        if has_room and partition.place in self._full and self._is_assigned(partition):
            self._full.discard(partition.place)
            if not self._paused:
                self._effects.append(Resume([partition.place]))

    # ---- partitions come and go

    def _assigned(self, event: Assigned, now: Instant) -> None:
        if event.place in self.partitions:
            # Seen with eager protocols: assigned again without a revocation.
            self._give_up([self.partitions[event.place]], {})
        records, end = self._policy.warm_up(event, self._rules.uncommitted_max)
        recorded = self._policy.recorded(event, self._rules.uncommitted_max)
        self.partitions[event.place] = Partition(event.place, event.start, records, end, recorded)
        # librdkafka may remember a pause from an earlier assignment.
        fetch = Pause if self._paused or self.draining else Resume
        self._effects.append(fetch([event.place]))

    def _revoking(self, event: Revoking, now: Instant) -> None:
        partitions = [self.partitions[place] for place in event.places if place in self.partitions]
        first: dict[Partition, int] = {}
        for entry in (*self._unregistered, *self._others):
            partition = entry.partition
            if entry.state in UNSTARTED and entry.offset >= partition.requested:
                first[partition] = min(entry.offset, first.get(partition, entry.offset))
        targets = {partition: partition.last_commit(first.get(partition)) for partition in partitions}
        # Also the same offset again: its metadata says that records beyond it may be registered, and how many.
        self._releasing.update({p: target for p, target in targets.items() if target > p.confirmed or p.uncommitted})
        self._give_up(partitions, targets)
        last = {p: self._releasing[p] for p in partitions if p in self._releasing}
        self._effects.append(Release(*self._commit_of(last)))

    def _lost(self, event: Lost, now: Instant) -> None:
        self._give_up([self.partitions[place] for place in event.places if place in self.partitions], {})

    def _give_up(self, partitions: list[Partition], targets: dict[Partition, int]) -> None:
        """Divide the records of partitions between this process and the next owner.

        The division holds even if the last commit fails: the offset committed before is no higher, so the next owner
        polls every record that is dropped here.

        Args:
            targets: the offsets of the last commits; else what was requested, which may be committed, divides.
        """
        cancelled: list[Entry] = []
        for entry in [e for e in (*self._unregistered, *self._others) if e.partition in partitions]:
            if entry.offset < targets.get(entry.partition, entry.partition.requested):
                continue
            running = entry.state in RUNNING
            if entry.take(Step.DROP):
                self._close(entry)
                if running:
                    cancelled.append(entry)
        self._scheduler.remove(lambda entry: entry.state is State.DROPPED)
        for partition in partitions:
            del self.partitions[partition.place]
            self._unproved.discard(partition)
            self._full.discard(partition.place)
            self._release_queued(partition)
            self._leave_held(partition)
        if cancelled:
            self._effects.append(Cancel(cancelled))

    # ---- time

    def _tick(self, event: Tick, now: Instant) -> None:
        if now.s >= self._tick_due_s:
            self._tick_due_s = now.s + TICK_S
            self.prefetch.observe(now.s, self._settled)
            self._renew_overdue(now)
        if self._unregistered and now.s >= self._slow_due_s:
            self._slow_due_s = now.s + SLOW_TICK_S
            self._register_slow(now)
        if now.s >= self._commit_due_s or self._commit_now or self._unproved or self._waits_for_commit():
            self._commit(now)
        if self._paused and not self.draining and self._has_room_again():
            self._paused = False
            self._taken_without_room = 0
            self._effects.append(Resume([place for place in self.partitions if place not in self._full]))

    def _has_room_again(self) -> bool:
        # A quarter of what could be polled if no record were open, by the tighter of the two limits.
        capacity = self.prefetch.capacity(self.open, self._size)
        return capacity * RESUME_SHARE >= self.prefetch.capacity(0, 0)

    def _drain(self, event: Draining, now: Instant) -> None:
        self.draining = True
        self._effects.append(Pause(list(self.partitions)))


_MISSING: Final = object()
_MAY_REGISTER: Final = frozenset({State.READY, State.RUNNING})
_REGISTERED_WAITING: Final = frozenset({State.HELD, State.READY_REGISTERED, State.RENEWING})
_WAITS_FOR_REPORT: Final = frozenset({State.REGISTERING, State.RENEWING})
_MAY_RENEW: Final = frozenset({State.HELD, State.READY_REGISTERED})


def _is_overdue(entry: Entry, now_s: float) -> bool:
    """Return whether too little is left of a registered record's time to live to start its call."""
    lifetime = entry.lifetime
    return lifetime is not None and lifetime.start_by_s < now_s and entry.state in _MAY_RENEW
