"""Safeguards of the dispatch: which calls start, how many at once, when, and in which order."""

from __future__ import annotations

from pkgutil import resolve_name

from tests.safeguards.catalogue import NOTHING, Patch, safeguard

ENGINE = "processor.protocol.engine.Engine"
ASSIGNMENTS = "processor.protocol.rebalances.Rebalances"
SLOTS = "processor.flow.slots.Slots"
ORDERED = "processor.flow.scheduler.Ordered"


@safeguard("P7.2", at=f"{SLOTS}.__init__")
def without_limit(original, self, scheduler, limit, *others):
    """One call more than `max_in_flight` runs."""
    fixed = resolve_name("processor.flow.concurrency.FixedLimit")(limit.current + 1)
    original(self, scheduler, fixed, *others)


@safeguard("P7.3", at="processor.handlers.python._Call.abandon")
def without_slots_of_continuing_calls(original, self):
    """A plain function that exceeds its limit runs in addition to `max_in_flight` others."""
    original(self)
    self._slots.blocked -= 1
    self._slots.give()


@safeguard("P7.18", at="processor.flow.blocked_calls.Tokens.take")
def without_tokens(*_):
    """The calls of an outage are cancelled one after the other, and their records go to the topics for failures."""
    return True


@safeguard("P7.18", at="processor.flow.blocked_calls.BlockedCalls.choose", seeds=True, first=30)
def without_one_cancellation_at_a_time(original, self, slots, continuing, now_s):
    """The next blocked call is cancelled while another continues after its cancellation."""
    self._chosen = None
    return original(self, slots, continuing, now_s)


@safeguard("P7.18", at=f"{ENGINE}._tick", seeds=True, first=3_033)
def without_ends_of_blocked_calls(original, self, event, now):
    """The record of a blocked call gets its outcome when the call is cancelled, not when it has ended."""
    original(self, event, now)
    for effect in [effect for effect in self._effects if type(effect).__name__ == "Cancel"]:
        (entry,) = effect.entries
        outcome = resolve_name("processor.protocol.results.DeadLetter")("blocked", ValueError("blocked"))
        self.records.fail(entry, outcome)
        self._effects.append(resolve_name("processor.protocol.effects.Publish")([entry]))


@safeguard("P7.19", at="processor.flow.route_limits.RouteLimits._takes_slot", real=True, seeds=True)
def without_limits_of_routes(*_):
    """A call starts although its route has no free slot."""
    return True


@safeguard("P7.19", "P1", at="processor.flow.route_limits.RouteLimits.give", seeds=True)
def without_returned_slots_of_routes(*_):
    """A route keeps the slot of a call that has ended."""


@safeguard("P3.16", real=True, seeds=True, world=lambda w: w.eager(late=True))
def without_renewal(patch: Patch) -> None:
    """A call starts however little of the time to live is left, and its registration expires while it runs."""
    patch.replace("processor.protocol.record._MAY_RENEW", frozenset())


@safeguard("P3.16", NOTHING, at=f"{SLOTS}._lacks_time", real=True, seeds=True)
def without_acknowledgments_before_late_calls(_, self, entry, now_s):
    """A call starts while its registration isn't acknowledged, however little time that leaves.

    The acknowledgment must take nearly all of the time to live while slots become free.
    """
    return entry.is_overdue(now_s)


@safeguard("D1.1", at=f"{ENGINE}._due", real=True, seeds=True)
def without_delay(_, self, event, *others):
    """A record of a retry topic is handled when it is polled."""
    return event


@safeguard("D1.2", at="processor.protocol.partition._since_ms", real=True, seeds=True)
def without_bound_of_waits(_, timestamp_ms, seen_ms):
    """A record with a timestamp far in the future holds its partition up until then."""
    return timestamp_ms


@safeguard("D1.2", at=f"{ENGINE}._ends_seen", real=True, seeds=True)
def without_ends_of_paused_logs(*_):
    """Of records with timestamps far in the future, each delay lets those of one poll through."""


@safeguard("P1.24", at=f"{ENGINE}._due", seeds=True)
def without_rewind_to_early_records(original, self, *event):
    """A record that isn't due is dropped, and later the records behind it are read."""
    kept = original(self, *event)
    self._effects[:] = [effect for effect in self._effects if type(effect).__name__ != "Rewind"]
    return kept


@safeguard("O1.1", at=f"{ORDERED}.enter", real=True, seeds=True)
def without_order(*_):
    """A record starts whatever is before it in its lane."""


def _may_leave_twice(patch: Patch) -> None:
    @patch.around(f"{ORDERED}.leave")
    def leave(original, self, entries):
        original(self, [entry for entry in entries if entry in self._lanes.get(self._lane_of(entry), ())])


@safeguard("O1.1", seeds=True)
def without_order_behind_malformed_records(patch: Patch) -> None:
    """A record starts while the dead letter of an earlier malformed one isn't acknowledged."""
    _may_leave_twice(patch)

    @patch.around(f"{ENGINE}._pass_malformed_on")
    def pass_on(original, self, entries, event):
        kept = original(self, entries, event)
        self._slots.leave([entry for entry in entries if entry not in kept])
        return kept


@safeguard("O1.1", seeds=True)
def without_order_behind_dead_letters(patch: Patch) -> None:
    """A record starts when the call before it has failed, before the dead letter is acknowledged."""
    _may_leave_twice(patch)

    @patch.around(f"{ENGINE}._calls_ended")
    def calls_ended(original, self, event, now):
        original(self, event, now)
        self._slots.leave([entry for entry, _ in event.calls if entry.state.name.startswith("PUBLISHING")])


@safeguard("O1.1", seeds=True)
def without_order_of_polling(patch: Patch) -> None:
    """A record waits only for those that could start before it, not for those that are held in a warm-up."""
    _may_leave_twice(patch)
    enter = resolve_name(f"{ORDERED}.enter")
    patch.replace(f"{ORDERED}.enter", lambda self, entries: None)

    @patch.around(f"{ORDERED}.add")
    def add(original, self, entries):
        enter(self, entries)
        original(self, entries)


@safeguard("O1.2", seeds=True)
def without_order_behind_cancelled_calls(patch: Patch) -> None:
    """A record starts while an earlier assignment's cancelled call continues."""
    _may_leave_twice(patch)

    @patch.around(f"{ASSIGNMENTS}._give_up")
    def give_up(original, self, partitions, targets):
        original(self, partitions, targets)
        for effect in self._effects:
            if type(effect).__name__ == "Cancel":
                self._flow.slots.leave(effect.entries)


@safeguard("O1.3")
def without_ended_calls_at_revocations(patch: Patch) -> None:
    """A revoked partition is given up while its calls run, and they aren't cancelled."""

    @patch.around("processor.loop.Loop._finish")
    async def finish(*_):
        return None

    patch.replace("processor.calls.worker_pool.WorkerPool.cancel", lambda self, entries: None)
