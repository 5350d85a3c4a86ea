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
   letter or retry record too, if it has one.
5. When a partition is given up, the next owner gets what no commit can have passed and hasn't started.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from processor.flow.blocked_calls import BlockedCalls
from processor.flow.bulkheads import Bulkheads
from processor.flow.concurrency import ConcurrencyLimit
from processor.flow.fetching import Fetching
from processor.flow.prefetch import Prefetch
from processor.flow.retry_policy import RetryPolicy
from processor.flow.scheduler import Scheduler
from processor.flow.slots import Slots, is_overdue
from processor.protocol.commits import Commits
from processor.protocol.due_times import DueTimes
from processor.protocol.events import (
    Assigned,
    CallsEnded,
    Cancel,
    CommitAnswered,
    DeadLetter,
    DeadLetterRefused,
    Draining,
    Effect,
    EndsSeen,
    Event,
    Failed,
    Instant,
    Lifetime,
    Lost,
    Pause,
    Polled,
    PollingWithoutRoom,
    Publish,
    Published,
    ReadTo,
    Register,
    Registered,
    RegistrationRefused,
    Resume,
    Retry,
    RetryRefused,
    Revoked,
    Revoking,
    Rewind,
    SlotsBlocked,
    Start,
    Tick,
    WriteTombstones,
)
from processor.protocol.held import Held
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import UNKNOWN, Partition, Recorded
from processor.protocol.record import KEPT, RUNNING, UNREGISTERED_WORK, UNSTARTED, WORK, Entry, State, Step, take_all
from processor.protocol.refused_dead_letters import RefusedLetters
from processor.protocol.registering import RegistrationPolicy
from wait_registry.records.topics import TopicPartition

# In deferred: how old the last confirmed commit may be that shows that a partition is still this process's.
OWNERSHIP_S: Final = 5.0
ANSWER_SOON_S: Final = 1.0
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 0.02
# A quarter of what may be open is polled at a time.
REFILL_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """The engine's numbers.

    Args:
        policy: when a record is registered.
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
        commit_interval_s: pause between commits, s.
        ttl_s: from registration to expiry, s.
        start_needs_s: what must be left of it when a call starts, s.
        hold_oversized: whether a record that can't be registered before its call is called all the same, and holds the
            offset meanwhile; else it is dead-lettered.
        cancel_after_s: age of calls that are cancelled if they hold nearly all slots, s; None cancels none.
    """

    policy: RegistrationPolicy
    uncommitted_max: int
    commit_interval_s: float
    ttl_s: float
    start_needs_s: float
    hold_oversized: bool = False
    cancel_after_s: float | None = None


class Engine:
    """Register, commit, call, settle. Owns the state of every record.

    Args:
        rules: the numbers.
        scheduler: says which record starts next.
        limit: how many calls may run.
        prefetch: how many records may be open.
        retries: where a failed record goes.
        bulkheads: the worker slots of routes, if some have a limit of their own.
    """

    def __init__(
        self,
        rules: Rules,
        scheduler: Scheduler,
        limit: ConcurrencyLimit,
        prefetch: Prefetch,
        retries: RetryPolicy,
        bulkheads: Bulkheads | None = None,
    ) -> None:
        self._rules = rules
        self._policy = rules.policy
        self._prefetch = prefetch
        self._retries = retries
        self.partitions: dict[TopicPartition, Partition] = {}
        self.records = OpenRecords()
        self._fetching = Fetching(rules.uncommitted_max)
        self._commits = Commits(rules.commit_interval_s, Recorded(rules.uncommitted_max, rules.policy.mode.value))
        self._held = Held(rules.policy.passes_registered)
        self._blocked = None if rules.cancel_after_s is None else BlockedCalls(rules.cancel_after_s)
        calls = None if self._blocked is None else self._blocked.calls
        self._slots = Slots(scheduler, limit, calls, bulkheads)
        self._settled = 0
        self.refused = RefusedLetters()
        self._tick_due_s = -math.inf
        self._slow_due_s = -math.inf
        self.draining = False
        self._effects: list[Effect] = []
        self._steps: dict[type, Callable[[Any, Instant], None]] = {
            Polled: self._polled,
            ReadTo: self._read_to,
            EndsSeen: self._ends_seen,
            PollingWithoutRoom: self._polling_without_room,
            Registered: self._registered,
            RegistrationRefused: self._registration_refused,
            CommitAnswered: self._commit_answered,
            CallsEnded: self._calls_ended,
            Published: self._published,
            RetryRefused: self._retry_refused,
            DeadLetterRefused: self._dead_letter_refused,
            Assigned: self._assigned,
            Revoking: self._revoking,
            Revoked: self._revoked,
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
        if self._slots.waiting:
            self._start(now)
        effects = self._effects
        self._effects = []
        return effects

    # ---- what the shell and the telemetry ask

    @property
    def waiting(self) -> int:
        """How many records wait for a worker slot."""
        return self._slots.waiting

    @property
    def paused(self) -> bool:
        """Whether all partitions are paused, because there is no room."""
        return self._fetching.paused

    @property
    def start_pause_s(self) -> float:
        """The pause between the starts of two calls, s; 0 unless most calls fail."""
        return self._slots.start_pause_s

    @property
    def in_flight_limit(self) -> int:
        """How many calls may run now."""
        return self._slots.limit

    @property
    def blocked_cancelled(self) -> int:
        """How many calls were cancelled because nearly all slots were blocked."""
        return 0 if self._blocked is None else self._blocked.cancelled

    @property
    def prefetch_limit(self) -> int:
        """How many records may be open."""
        return self._prefetch.bound(self._calls_wait())

    def waits_for_operator(self) -> bool:
        """Return whether every open record is in a partition that a refused dead letter holds, and no call runs."""
        held = {entry.partition for entry in self.refused}
        return bool(held) and not self._slots.running and all(entry.partition in held for entry in self.records)

    def unfinished(self, places: Sequence[TopicPartition]) -> int:
        """Return how many records of partitions should end before these are given up."""
        again = UNREGISTERED_WORK if self._policy.passes_registered else WORK
        return self.records.unfinished(places, again) - self.refused.at(places)

    def room(self) -> int:
        """Return how many records may be polled now."""
        if self.draining or self.paused:
            return 0
        return min(self._capacity(), self._fetching.room(self.partitions.values()))

    def is_worth_a_poll(self, room: int) -> bool:
        """Return whether to poll when there is room for this number of records.

        A poll costs as much as dozens of records. So a prefetch that keeps all slots busy is filled up by a quarter of
        its bound at a time.
        """
        waiting = len(self.records) - self._slots.running - self._slots.behind
        return room > 0 and (waiting < self._slots.limit or room * REFILL_SHARE >= self.prefetch_limit)

    def commit_awaited_since_s(self) -> float:
        """Return since when calls wait for nothing but the answer of a commit, minus infinity if none do."""
        waits = self._slots.free > 0 and self._held.wait_for_commit()
        return self._commits.sent_s if waits else -math.inf

    def wake_s(self, now_s: float) -> float:
        """Return in how many seconds the next `Tick` is due, at the latest."""
        due_s = self._tick_due_s
        if self.records.unregistered and not math.isinf(self._policy.after_s):
            due_s = min(due_s, next(iter(self.records.unregistered)).polled_s + self._policy.after_s)
        if self._slots.waiting:
            due_s = min(due_s, self._slots.next_start_s)
        return max(0.0, min(due_s, self._fetching.next_due_s) - now_s)

    def _capacity(self) -> int:
        return self._prefetch.capacity(*self._load(), self._calls_wait(), self._slots.behind)

    def _load(self) -> tuple[int, int]:
        """Return how many records are open, and their bytes, without those that hold their partition."""
        return len(self.records) - len(self.refused), self.records.size - self.refused.size

    def _calls_wait(self) -> bool:
        return self._policy.before_call or bool(self._held)

    # ---- records come

    def _polled(self, event: Polled, now: Instant) -> None:
        partition = self.partitions[event.place]
        if not self._fetching.is_announced(event.place):
            self._announce(partition, event.offsets[0])
            return
        if partition.due_times is not None:
            event = self._due(event, partition.due_times, now)
            if not event.offsets:
                return
        number = partition.polled
        partition.add(array("q", event.offsets))
        size = sum(event.sizes)
        self.records.size += size
        self._prefetch.observe_size(len(event.offsets), size)
        entries = self._entries(partition, number, event, now)
        if event.foreign:
            entries = self._pass_over(entries, event)
        if partition.retries:
            self.records.retries += len(entries)
        self._slots.enter(entries)
        if event.malformed:
            entries = self._pass_malformed_on(entries, event)
        self._admit(partition, entries, now)
        if self._fetching.is_half_full(partition):
            self._commits.hasten()
        self._effects += self._fetching.polled(partition, len(event.offsets), self.partitions)
        if partition.retries and not self._fetching.retries_paused and self._retries_are_many(2):
            self._effects += self._fetching.pause_retries(self.partitions.values())
        if self._slots.behind_of(event.place) > self._share():
            self._effects += self._fetching.crowds(event.place)

    def _read_to(self, event: ReadTo, now: Instant) -> None:
        partition = self.partitions[event.place]
        # The first record of a log shows which offset to commit. What is polled in a drain is dropped.
        if partition.position != UNKNOWN and not self.draining:
            partition.read_to(event.offset)

    def _ends_seen(self, event: EndsSeen, now: Instant) -> None:
        for partition in self._of(list(event.ends)):
            if partition.due_times is not None:
                partition.due_times.seen(event.ends[partition.place], now.wall_ms)

    def _announce(self, partition: Partition, first: int) -> None:
        """Commit where a log begins, and poll its records again then."""
        if partition.position == UNKNOWN:
            partition.begin(first)
        self._commits.announce(partition)
        self._effects += [Pause([partition.place]), Rewind(partition.place, first)]

    def _share(self) -> int:
        return self._prefetch.share(len(self.partitions))

    def _due(self, event: Polled, due_times: DueTimes, now: Instant) -> Polled:
        """Return the part of a poll that may be handled; wait for the rest, of which nothing is kept."""
        count = due_times.due(event.offsets, event.timestamps_ms, now.wall_ms)
        if count == len(event.offsets):
            return event
        due_s = now.s + (due_times.next_ms - now.wall_ms) / 1000
        self._effects += [
            self._fetching.is_early(event.place, due_s, now.s),
            Rewind(event.place, event.offsets[count]),
        ]
        parts = (event.offsets[:count], event.records[:count], event.sizes[:count])
        return Polled(event.place, *parts, event.malformed, event.foreign)

    def _retries_are_many(self, share: int) -> bool:
        """Return whether records of retry topics are this part of the prefetch, or more, while others are open."""
        retries = self.records.retries
        return retries < len(self.records) and retries * share >= self.prefetch_limit

    def _polling_without_room(self, event: PollingWithoutRoom, now: Instant) -> None:
        if self.paused:
            return
        if not self._prefetch.below_caps(*self._load()):
            self._effects.append(self._fetching.pause_all(self.partitions))
        elif now.s - self.commit_awaited_since_s() > ANSWER_SOON_S:
            # Else the answer of a commit makes room soon, and comes with polls only.
            self._fetching.polling_without_room()

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

    def _pass_over(self, entries: list[Entry], event: Polled) -> list[Entry]:
        for entry in entries:
            if entry.offset in event.foreign:
                entry.partition.make_safe(entry.number)
                self.records.size -= entry.size
        return [entry for entry in entries if entry.offset not in event.foreign]

    def _pass_malformed_on(self, entries: list[Entry], event: Polled) -> list[Entry]:
        malformed = [entry for entry in entries if entry.offset in event.malformed]
        self.records.add(malformed)
        for entry in malformed:
            self._fail(entry, DeadLetter("malformed", event.malformed[entry.offset], ours=True))
        self._effects.append(Publish(malformed))
        return [entry for entry in entries if entry.offset not in event.malformed]

    def _admit(self, partition: Partition, entries: list[Entry], now: Instant) -> None:
        """Register records before their calls, or let them start."""
        first = entries if self._policy.before_call else [entry for entry in entries if entry.warm_up]
        if first:
            self.records.add(first, registered=True)
            self._register(first, now)
            self._held.add(partition, first)
            entries = entries[len(first) :]
        self.records.add(entries)
        take_all(entries, Step.RELEASE)
        self._slots.add(entries)

    # ---- registration

    def _register(self, entries: list[Entry], now: Instant) -> None:
        if not entries:
            return
        lifetime = self._lifetime(now)
        take_all(entries, Step.REGISTER)
        for entry in entries:
            entry.lifetime = lifetime
        self._effects.append(Register(entries, lifetime))

    def _register_slow(self, now: Instant) -> None:
        """Register what isn't settled some time after it was polled, if the partition is surely still ours."""
        due_s = now.s - self._policy.after_s
        slow: list[Entry] = []
        for entry in self.records.unregistered:
            if entry.polled_s > due_s:
                break
            if entry.state not in _MAY_REGISTER:
                continue
            partition = entry.partition
            if now.s - partition.confirmed_s > OWNERSHIP_S:
                self._commits.prove(partition)
            else:
                slow.append(entry)
        self._register(slow, now)
        self.records.move(slow)

    def _registered(self, event: Registered, now: Instant) -> None:
        tombstones: list[Entry] = []
        touched: dict[Partition, None] = {}
        passes_registered = self._policy.passes_registered
        for entry in event.entries:
            if not entry.take(Step.REGISTERED):
                continue
            partition = entry.partition
            if passes_registered:
                partition.make_safe(entry.number)
            state = entry.state
            if state is State.HELD:
                touched[partition] = None
            elif state is State.READY_REGISTERED:
                self._slots.reported(entry)
            elif state is State.SETTLED:
                self._settle([entry])
                tombstones.append(entry)
        if touched:
            self._slots.renewed(event.entries)
        for partition in touched:
            self._release_held(partition)
            self._leave_held(partition)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))
        if self._held.wait_for_commit():
            self._commit(now)

    def _release_held(self, partition: Partition) -> None:
        """Let calls of registered records start, in the order of polling."""
        self._slots.add(self._held.release(partition))

    def _is_assigned(self, partition: Partition) -> bool:
        return self.partitions.get(partition.place) is partition

    def _registration_refused(self, event: RegistrationRefused, now: Instant) -> None:
        entry = event.entry
        if not entry.take(Step.REFUSE):
            return
        entry.lifetime = None
        if entry.state is State.POLLED and self._rules.hold_oversized:
            entry.take(Step.REFUSE)
            self._slots.add([entry])
        elif entry.state is State.POLLED:
            self._fail(entry, DeadLetter("unregistrable", event.error, ours=True))
            self._effects.append(Publish([entry]))
        elif entry.state is State.READY_UNREGISTRABLE:
            self._slots.reported(entry)
        elif entry.state is State.SETTLED:
            self._settle([entry])

    def _lifetime(self, now: Instant) -> Lifetime:
        ttl_s = self._rules.ttl_s
        return Lifetime(
            now.wall_ms + round(ttl_s * 1000), now.s, now.s + ttl_s, now.s + ttl_s - self._rules.start_needs_s
        )

    # ---- calls

    def _start(self, now: Instant) -> None:
        started, overdue = self._slots.start(now.s)
        self._renew(overdue, now)
        if started:
            self._effects.append(Start(started))

    def _renew(self, entries: list[Entry], now: Instant) -> None:
        """Register records again whose time to live ran short before they could start."""
        if not entries:
            return
        lifetime = self._lifetime(now)
        take_all(entries, Step.OVERDUE)
        for entry in entries:
            entry.lifetime = lifetime
        self._effects.append(Register(entries, lifetime))

    def _renew_overdue(self, now: Instant) -> None:
        # All slots may be busy, and a warm-up lasts for as long as no commit is confirmed.
        held = [entry for entry in self._held if is_overdue(entry, now.s) and self._stays(entry.partition)]
        self._renew(held + self._slots.take_overdue(now.s), now)

    def _stays(self, partition: Partition) -> bool:
        return self._is_assigned(partition) and partition not in self._slots.leaving

    def _cancel_blocked(self, now: Instant) -> None:
        if self._blocked is not None:
            entry = self._blocked.choose(self._slots.limit, self._slots.blocked, now.s)
            if entry is not None:
                self._effects.append(Cancel([entry]))

    def _calls_ended(self, event: CallsEnded, now: Instant) -> None:
        settled: list[Entry] = []
        tombstones: list[Entry] = []
        failed: list[Entry] = []
        given_up: list[Entry] = []
        abandoned = retriable = 0
        calls = event.calls if self._blocked is None else self._blocked.ended(event.calls, now.s)
        for entry, result in calls:
            registered = entry.state is State.RUNNING_REGISTERED
            if result is None:
                abandoned += 1
                taken = entry.take(Step.ABANDON)
                if taken:
                    self._close([entry])
            elif isinstance(result, Failed):
                retriable += result.retriable
                due_times = entry.partition.due_times
                came_from_s = due_times.delay_s if due_times is not None and due_times.retries else 0
                taken = self._fail(entry, self._retries.after(result, came_from_s))
                if taken:
                    failed.append(entry)
            else:
                taken = entry.take(Step.SUCCEED)
                if taken:
                    entry.outcome = result
                    if entry.state is State.SETTLED:
                        settled.append(entry)
                        if registered:
                            tombstones.append(entry)
            if not taken:
                given_up.append(entry)
        self._slots.ended(calls, len(calls) - abandoned, retriable, now.s)
        self._slots.leave(given_up)
        self._settle(settled)
        if self._rules.hold_oversized and self._held:
            # One that can't be registered has held up those behind it.
            for partition in {entry.partition for entry in settled if entry.lifetime is None}:
                self._release_held(partition)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))
        if failed:
            self._effects.append(Publish(failed))

    def _settle(self, entries: list[Entry]) -> None:
        for entry in entries:
            entry.partition.make_safe(entry.number)
        self._close(entries)
        self._settled += len(entries)

    def _close(self, entries: Sequence[Entry]) -> None:
        """Forget records that are settled, or that are given up and have no call."""
        self.records.close(entries)
        self._slots.leave(entries)

    def _fail(self, entry: Entry, outcome: DeadLetter | Retry) -> bool:
        if not entry.take(Step.FAIL):
            return False
        entry.outcome = outcome
        self.records.move([entry])
        return True

    def _published(self, event: Published, now: Instant) -> None:
        tombstones: list[Entry] = []
        for entry in event.entries:
            registered = entry.state is State.PUBLISHING_REGISTERED
            if not entry.take(Step.PUBLISHED):
                continue
            self.refused.remove(entry)
            if entry.state is State.SETTLED:
                self._settle([entry])
                if registered:
                    tombstones.append(entry)
                else:
                    self._release_held(entry.partition)
        if tombstones:
            self._effects.append(WriteTombstones(tombstones))

    def _retry_refused(self, event: RetryRefused, now: Instant) -> None:
        event.entry.outcome = DeadLetter("failed", event.error, ours=True)
        self._effects.append(Publish([event.entry]))

    def _dead_letter_refused(self, event: DeadLetterRefused, now: Instant) -> None:
        entry = event.entry
        if entry.state is State.DROPPED:
            return
        is_kept = entry.state is State.PUBLISHING_REGISTERED and self._policy.passes_registered
        if self._is_assigned(entry.partition) and not is_kept:
            self.refused.add(entry, now.s)
            # So few of these are in memory, and other partitions continue.
            self._effects += self._fetching.crowds(entry.partition.place)
        else:
            # The next owner's, or kept by its registration, which expires.
            self.refused.remove(entry)
            entry.take(Step.ABANDON)
            self._close([entry])

    def _slots_blocked(self, event: SlotsBlocked, now: Instant) -> None:
        self._slots.blocked = event.blocked

    # ---- commits

    def _commit(self, now: Instant) -> None:
        """Request the committable offsets that are ahead of the confirmed ones; one commit is in flight at most."""
        commit, unanswered = self._commits.request(self.partitions.values(), now.s)
        if commit is not None:
            self._effects.append(commit)
        for partition in unanswered:
            self._leave_held(partition)

    def _commit_answered(self, event: CommitAnswered, now: Instant) -> None:
        for partition, offset, sent_s in self._commits.answered(event, now.s):
            if offset is not None:
                self._confirm(partition, offset, sent_s)
            self._leave_held(partition)
        if event.confirmed and self._held.wait_for_commit():
            self._commit(now)

    def _leave_held(self, partition: Partition) -> None:
        """Let the held records of a partition that was given up expire, unless another commit may cover them.

        Nothing shows that a commit covers them, and a call might kill this process as it killed the last one.
        """
        if self._is_assigned(partition) or self._commits.may_cover_more(partition):
            return
        self._close(self._held.abandon(partition))
        self._release_held(partition)

    def _confirm(self, partition: Partition, offset: int, sent_s: float) -> None:
        partition.confirm(offset, sent_s)
        self._release_held(partition)
        # The answer may be late, and the place may have been assigned again and be full by now.
        if self._is_assigned(partition):
            self._effects += self._fetching.committed(partition)

    # ---- partitions come and go

    def _assigned(self, event: Assigned, now: Instant) -> None:
        if event.place in self.partitions:
            # Seen with eager protocols: assigned again without a revocation.
            self._give_up([self.partitions[event.place]], {})
        records, end = self._policy.warm_up(event, self._rules.uncommitted_max)
        recorded = self._policy.recorded(event, self._rules.uncommitted_max)
        due_times = DueTimes(event.delay_s, event.retries) if event.delay_s else None
        if due_times is not None and event.end is not None:
            due_times.seen(event.end, now.wall_ms)
        partition = Partition(event.place, event.start, records, end, recorded, due_times)
        self.partitions[event.place] = partition
        if not self._policy.is_announced(event, self._rules.uncommitted_max):
            self._fetching.awaits_announcement(event.place)
            if event.start is not None:
                self._commits.announce(partition)
        # librdkafka may remember a pause from an earlier assignment.
        fetch = Resume if self._fetching.may_fetch(partition) and not self.draining else Pause
        self._effects.append(fetch([event.place]))

    def _revoking(self, event: Revoking, now: Instant) -> None:
        self._slots.hold(self._of(event.places))

    def _of(self, places: Sequence[TopicPartition]) -> list[Partition]:
        return [self.partitions[place] for place in places if place in self.partitions]

    def _revoked(self, event: Revoked, now: Instant) -> None:
        partitions = self._of(event.places)
        first: dict[Partition, int] = {}
        for entry in self.records:
            partition = entry.partition
            if entry.state in UNSTARTED and entry.offset >= partition.requested:
                first[partition] = min(entry.offset, first.get(partition, entry.offset))
        targets = {partition: partition.last_commit(first.get(partition)) for partition in partitions}
        release = self._commits.release(targets, now.s)
        self._give_up(partitions, targets)
        self._effects.append(release)

    def _lost(self, event: Lost, now: Instant) -> None:
        self._give_up(self._of(event.places), {})

    def _give_up(self, partitions: list[Partition], targets: dict[Partition, int]) -> None:
        """Divide the records of partitions between this process and the next owner.

        The division holds even if the last commit fails: the offset committed before is no higher, so the next owner
        polls every record that is dropped here.

        Args:
            targets: the offsets of the last commits; else what was requested, which may be committed, divides.
        """
        dropped: list[Entry] = []
        cancelled: dict[Entry, None] = {}
        for entry in [entry for entry in self.records if entry.partition in partitions]:
            if entry.offset < targets.get(entry.partition, entry.partition.requested):
                continue
            running = entry.state in RUNNING
            # Where a commit passes settled records only, the next owner handles a registered one too.
            abandons = entry.state in KEPT and not self._policy.passes_registered
            if entry.take(Step.ABANDON if abandons else Step.DROP):
                dropped.append(entry)
                if running:
                    cancelled[entry] = None
        for entry in self.refused.of(partitions):
            self.refused.remove(entry)
            entry.take(Step.ABANDON)
            dropped.append(entry)
        self.records.close(dropped)
        self._slots.drop()
        # Those whose calls run leave when these end.
        self._slots.leave([entry for entry in dropped if entry not in cancelled])
        for partition in partitions:
            del self.partitions[partition.place]
            self._commits.forget(partition)
            self._fetching.forget(partition.place)
            self._release_held(partition)
            self._leave_held(partition)
        self._slots.let_go()
        if cancelled:
            self._effects.append(Cancel(list(cancelled)))

    # ---- time

    def _tick(self, event: Tick, now: Instant) -> None:
        self._fetching.poll_has_ended()
        if now.s >= self._tick_due_s:
            self._tick_due_s = now.s + TICK_S
            self._prefetch.observe(now.s, self._settled)
            self._renew_overdue(now)
            if due := self.refused.due(now.s):
                self._effects.append(Publish(due))
            self._cancel_blocked(now)
        if event.polled and self.records.unregistered and now.s >= self._slow_due_s:
            self._slow_due_s = now.s + SLOW_TICK_S
            self._register_slow(now)
        if self._commits.is_due(now.s) or self._held.wait_for_commit():
            self._commit(now)
        if not self.draining:
            self._resume(now)

    def _resume(self, now: Instant) -> None:
        fetching, partitions = self._fetching, self.partitions.values()
        if self.paused and self._has_room_again():
            self._effects += fetching.has_room_again(partitions)
        if fetching.next_due_s <= now.s:
            self._effects += fetching.due(now.s, partitions)
        if fetching.retries_paused and not self._retries_are_many(4):
            self._effects += fetching.resume_retries(partitions)
        for place in list(fetching.crowded):
            if self._may_continue(place):
                self._effects += fetching.has_thinned(self.partitions[place])

    def _may_continue(self, place: TopicPartition) -> bool:
        return not self.refused.at([place]) and 2 * self._slots.behind_of(place) <= self._share()

    def _has_room_again(self) -> bool:
        # A quarter of what could be polled if no record were open, by the tighter of the two limits.
        return self._capacity() * REFILL_SHARE >= self._prefetch.capacity(0, 0, self._calls_wait())

    def _drain(self, event: Draining, now: Instant) -> None:
        self.draining = True
        self._effects.append(Pause(list(self.partitions)))


_MAY_REGISTER: Final = frozenset({State.READY, State.RUNNING})
