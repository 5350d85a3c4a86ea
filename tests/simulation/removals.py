"""Take one rule out of the real engine: each function removes the rule after which it is named."""

# ruff: noqa: SLF001 - the rules are the private methods of the engine
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from pytest import MonkeyPatch

from processor import engine, lifecycle
from processor.commits import Commits
from processor.dispatch import slots
from processor.dispatch.blocked_calls import BlockedCalls
from processor.dispatch.bulkheads import Bulkheads, BulkheadScheduler
from processor.engine import Engine
from processor.events import CallsEnded, Cancel, DeadLetter, Polled, Publish, Rewind, WriteTombstones
from processor.lifecycle import UNSTARTED, Entry, State, Step
from processor.open_records import OpenRecords
from processor.partition import UNKNOWN, Partition
from processor.registration.policy import RegistrationPolicy
from tests.simulation import process
from wait_registry.settings.processor import RegistrationMode


def cell(patch: MonkeyPatch, state: State, step: Step, target: State | None) -> None:
    """Change one cell of the transition table; None ignores the step."""
    rows = [list(row) for row in lifecycle._CELLS]
    rows[state][step] = lifecycle._SAME if target is None else int(target)
    patch.setattr(lifecycle, "_CELLS", tuple(tuple(row) for row in rows))


# ---- registrations and commits


def commit_waits_for_acknowledgment(patch: MonkeyPatch) -> None:
    """Let commits pass records whose wait records are only sent."""
    register = Engine._register

    def changed(self: Engine, entries: list[Entry], now: Any) -> None:
        register(self, entries, now)
        for entry in entries:
            entry.partition.make_safe(entry.number)

    patch.setattr(Engine, "_register", changed)


def commit_is_contiguous(patch: MonkeyPatch) -> None:
    """Commit up to the last safe record, whatever is open before it."""

    def committable(self: Partition) -> int:
        last = self._safe.rfind(b"\1")
        if last >= 0:
            return max(self.requested, self._offsets[last] + 1)
        return max(self.requested, self._offsets[0] if self._offsets else self.position)

    patch.setattr(Partition, "committable", property(committable))


def _refused_is_safe(patch: MonkeyPatch, states: Iterable[State]) -> None:
    refused = Engine._registration_refused

    def changed(self: Engine, event: Any, now: Any) -> None:
        refused(self, event, now)
        if event.entry.state in states:
            event.entry.partition.make_safe(event.entry.number)

    patch.setattr(Engine, "_registration_refused", changed)


def unregistrable_waits_for_letter(patch: MonkeyPatch) -> None:
    """Let commits pass a refused record of the warm-up before its dead letter is acknowledged."""
    _refused_is_safe(patch, {State.PUBLISHING})


def unregistrable_holds_the_commit(patch: MonkeyPatch) -> None:
    """Let commits pass a refused record whose call hasn't ended."""
    _refused_is_safe(patch, {State.READY_UNREGISTRABLE, State.RUNNING_UNREGISTRABLE})


def late_refusal_settles(patch: MonkeyPatch) -> None:
    """Ignore a refusal that arrives after the outcome."""
    refused = Engine._registration_refused

    def changed(self: Engine, event: Any, now: Any) -> None:
        if event.entry.state is not State.DONE_REGISTERING:
            refused(self, event, now)

    patch.setattr(Engine, "_registration_refused", changed)


def letter_of_unregistered_first(patch: MonkeyPatch) -> None:
    """Count an unregistered record as settled when its call fails."""
    fail = Engine._fail

    def changed(self: Engine, entry: Entry, letter: DeadLetter) -> bool:
        failed = fail(self, entry, letter)
        if failed and entry.state is State.PUBLISHING:
            entry.partition.make_safe(entry.number)
        return failed

    patch.setattr(Engine, "_fail", changed)


def bound(patch: MonkeyPatch) -> None:
    """Count no uncommitted records."""
    patch.setattr(Partition, "uncommitted", property(lambda self: 0))


# ---- the warm-up


def _warm_up_is(patch: MonkeyPatch, change: Callable[[Any, Any, int], tuple[float, float]]) -> None:
    patch.setattr(RegistrationPolicy, "warm_up", change)


def no_warm_up(patch: MonkeyPatch) -> None:
    """Let no assignment warm up."""
    _warm_up_is(patch, lambda self, assigned, own: (0, 0))


_WARM_UP = RegistrationPolicy.warm_up


def warm_up_counts_the_recorded_bound(patch: MonkeyPatch) -> None:
    """Warm up by this process's own bound."""

    def changed(self: Any, assigned: Any, own: int) -> tuple[float, float]:
        records, end = _WARM_UP(self, assigned, own)
        return (own if 0 < records < math.inf else records), end

    _warm_up_is(patch, changed)


def unknown_bound_is_no_limit(patch: MonkeyPatch) -> None:
    """Take an unknown bound for this process's own."""

    def changed(self: Any, assigned: Any, own: int) -> tuple[float, float]:
        records, end = _WARM_UP(self, assigned, own)
        return min(records, own), end

    # With the world's own bounds, a bound that isn't known is never much larger.
    _warm_up_is(patch, changed)


def unknown_end_is_no_limit(patch: MonkeyPatch) -> None:
    """Let an assignment whose log end is unknown not warm up."""

    def changed(self: Any, assigned: Any, own: int) -> tuple[float, float]:
        records, end = _WARM_UP(self, assigned, own)
        return records, (0 if math.isinf(end) else end)

    _warm_up_is(patch, changed)


def warm_up_ends(patch: MonkeyPatch) -> None:
    """Never end a warm-up."""

    def changed(self: Any, assigned: Any, own: int) -> tuple[float, float]:
        records, _ = _WARM_UP(self, assigned, own)
        return (math.inf, math.inf) if records else (0, 0)

    _warm_up_is(patch, changed)


def switching_warms_up(patch: MonkeyPatch) -> None:
    """Let `off` never warm up."""

    def changed(self: Any, assigned: Any, own: int) -> tuple[float, float]:
        return (0, 0) if self.mode is RegistrationMode.OFF else _WARM_UP(self, assigned, own)

    _warm_up_is(patch, changed)


def bound_is_announced(patch: MonkeyPatch) -> None:
    """Take records of a partition before a commit tells the next owner of mode and bound."""
    patch.setattr(RegistrationPolicy, "is_announced", lambda self, assigned, own: True)


def held_waits_for_the_commit(patch: MonkeyPatch) -> None:
    """In the warm-up, call the handler when the record is registered."""
    registered = Engine._registered

    def changed(self: Engine, event: Any, now: Any) -> None:
        for entry in event.entries:
            entry.warm_up = False
        registered(self, event, now)

    patch.setattr(Engine, "_registered", changed)


def uncovered_held_expires(patch: MonkeyPatch) -> None:
    """Call the handler for held records of a partition that was given up, though no commit covers them."""

    def changed(self: Engine, partition: Partition) -> None:
        if self._is_assigned(partition) or self._commits.may_cover_more(partition):
            return
        held = [entry for entry in self._held._queues.pop(partition, ()) if entry.state is State.HELD]
        for entry in held:
            entry.take(Step.RELEASE)
        self._slots.add(held)

    patch.setattr(Engine, "_leave_held", changed)


# ---- tombstones and dead letters


def tombstone_waits_for_letter(patch: MonkeyPatch) -> None:
    """Send the tombstone together with the dead letter."""
    ended = Engine._calls_ended

    def changed(self: Engine, event: CallsEnded, now: Any) -> None:
        ended(self, event, now)
        early = [entry for entry, _ in event.calls if entry.state is State.PUBLISHING_REGISTERED]
        if early:
            self._effects.append(WriteTombstones(early))

    patch.setattr(Engine, "_calls_ended", changed)


def outcome_waits_for_the_report(patch: MonkeyPatch) -> None:
    """Settle a record without a tombstone if its wait record isn't acknowledged."""
    cell(patch, State.RUNNING_REGISTERING, Step.SUCCEED, State.SETTLED)
    cell(patch, State.SETTLED, Step.REGISTERED, None)
    cell(patch, State.SETTLED, Step.REFUSE, None)


def letter_waits_for_the_report(patch: MonkeyPatch) -> None:
    """Settle a dead letter without a tombstone if its wait record isn't acknowledged."""
    cell(patch, State.PUBLISHING_REGISTERING, Step.PUBLISHED, State.SETTLED)
    cell(patch, State.SETTLED, Step.REGISTERED, None)
    cell(patch, State.SETTLED, Step.REFUSE, None)


def wait_id_is_computed(patch: MonkeyPatch) -> None:
    """Give a record a new wait ID whenever it is polled."""
    numbers = iter(range(1 << 30))
    patch.setattr(process, "wait_id", lambda *_: str(UUID(int=next(numbers))))


# ---- partitions come and go


def no_tombstone_on_revoke(patch: MonkeyPatch) -> None:
    """Write tombstones for the records that the next owner handles."""
    give_up = Engine._give_up

    def changed(self: Engine, partitions: list[Partition], targets: Any) -> None:
        registered = [e for e in self.records if e.partition in partitions and e.state is State.READY_REGISTERED]
        give_up(self, partitions, targets)
        dropped = [entry for entry in registered if entry.state is State.DROPPED]
        if dropped:
            self._effects.append(WriteTombstones(dropped))

    patch.setattr(Engine, "_give_up", changed)


def revoke_flushes(patch: MonkeyPatch) -> None:
    """Give partitions up without waiting for wait records in flight."""
    in_flight = OpenRecords.in_flight
    patch.setattr(OpenRecords, "in_flight", lambda self, places=None: 0 if places is not None else in_flight(self))


def commit_stops_at_unstarted(patch: MonkeyPatch) -> None:
    """Let the last commit pass the records that are left to the next owner."""
    give_up = Engine._give_up

    before: dict[Partition, int] = {}

    def last_commit(self: Partition, first_unstarted: int | None) -> int:
        before[self] = self.requested
        self.requested = max(self.requested, self.committable)
        return self.requested

    def changed(self: Engine, partitions: list[Partition], targets: Any) -> None:
        for entry in [e for e in self.records if e.partition in partitions and e.state in UNSTARTED]:
            if entry.offset >= before.get(entry.partition, entry.partition.requested):
                entry.take(Step.DROP)
                self.records.close([entry])
        give_up(self, partitions, targets)

    patch.setattr(Partition, "last_commit", last_commit)
    patch.setattr(Engine, "_give_up", changed)


def renewal_is_the_next_owners(patch: MonkeyPatch) -> None:
    """In `off`, keep a record that is being registered again when its partition is given up."""
    patch.setattr(engine, "KEPT", lifecycle.KEPT - {State.RENEWING})


def committed_is_kept(patch: MonkeyPatch) -> None:
    """Drop also what a commit has passed."""
    give_up = Engine._give_up
    patch.setattr(
        Engine, "_give_up", lambda self, places, targets: give_up(self, places, dict.fromkeys(places, UNKNOWN))
    )


def requested_counts_as_committed(patch: MonkeyPatch) -> None:
    """Take a commit without an answer for one that failed."""

    def without(step: Callable[[Engine, Any, Any], None]) -> Callable[[Engine, Any, Any], None]:
        def changed(self: Engine, event: Any, now: Any) -> None:
            requested = {partition: partition.requested for partition in self.partitions.values()}
            for partition in requested:
                partition.requested = partition.confirmed
            step(self, event, now)
            for partition, offset in requested.items():
                partition.requested = max(partition.requested, offset)

        return changed

    patch.setattr(Engine, "_revoking", without(Engine._revoking))
    patch.setattr(Engine, "_lost", without(Engine._lost))


def dropped_calls_are_cancelled(patch: MonkeyPatch) -> None:
    """Let the calls of unregistered records continue after their partition was given up."""
    cell(patch, State.RUNNING, Step.DROP, None)


def blocked_calls_are_cancelled_one_by_one(patch: MonkeyPatch) -> None:
    """Cancel the next blocked call while another continues after its cancellation."""
    choose = BlockedCalls.choose

    def changed(self: BlockedCalls, slots: int, continuing: int, now_s: float) -> Entry | None:
        self._chosen = None
        return choose(self, slots, continuing, now_s)

    patch.setattr(BlockedCalls, "choose", changed)


def route_has_a_limit(patch: MonkeyPatch) -> None:
    """Start the call of a record whose route has no free slot."""
    patch.setattr(BulkheadScheduler, "_takes_slot", lambda self, entry: True)


def slots_of_routes_come_back(patch: MonkeyPatch) -> None:
    """Keep the slot of a route when its call has ended."""
    patch.setattr(Bulkheads, "give", lambda self, entries: None)


def blocked_record_waits_for_its_call(patch: MonkeyPatch) -> None:
    """Pass the record of a blocked call on when the call is cancelled, not when it has ended."""
    cancel = Engine._cancel_blocked

    def changed(self: Engine, now: Any) -> None:
        before = len(self._effects)
        cancel(self, now)
        for effect in self._effects[before:]:
            assert isinstance(effect, Cancel)
            (entry,) = effect.entries
            self._fail(entry, DeadLetter("blocked", ValueError("blocked")))
            self._effects.append(Publish([entry]))

    patch.setattr(Engine, "_cancel_blocked", changed)


# ---- deferred registration


def registers_after_the_news(patch: MonkeyPatch) -> None:
    """Register slow records at any time, not only after a poll."""
    ended = Engine._calls_ended

    def changed(self: Engine, event: CallsEnded, now: Any) -> None:
        ended(self, event, now)
        self._register_slow(now)

    patch.setattr(Engine, "_calls_ended", changed)


def deferred_proves_ownership(patch: MonkeyPatch) -> None:
    """Register slow records however long no commit was confirmed."""
    patch.setattr(engine, "OWNERSHIP_S", math.inf)


def commits_again_to_prove(patch: MonkeyPatch) -> None:
    """Never commit the same offset again."""

    patch.setattr(Commits, "prove", lambda self, partition: None)


def time_left_is_awaited(patch: MonkeyPatch) -> None:
    """Start a call while its registration isn't acknowledged, however little time that leaves."""
    patch.setattr(slots.Slots, "_lacks_time", lambda self, entry: entry.state in slots._MAY_RENEW)


def overdue_is_renewed(patch: MonkeyPatch) -> None:
    """Start calls however little of the time to live is left."""
    patch.setattr(slots, "_MAY_RENEW", frozenset())


# ---- delays


def delay_is_awaited(patch: MonkeyPatch) -> None:
    """Handle records of a retry topic when they are polled."""
    patch.setattr(Engine, "_due", lambda self, event, due_times, now: event)


def early_is_polled_again(patch: MonkeyPatch) -> None:
    """Drop a record that isn't due and read on behind it when it is."""
    due = Engine._due

    def changed(self: Engine, event: Polled, due_times: Any, now: Any) -> Polled:
        kept = due(self, event, due_times, now)
        self._effects = [effect for effect in self._effects if not isinstance(effect, Rewind)]
        return kept

    patch.setattr(Engine, "_due", changed)
