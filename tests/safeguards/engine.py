"""Safeguards of the engine: what it registers, commits and settles, and how partitions come and go."""

from __future__ import annotations

import math
from pkgutil import resolve_name
from typing import Any
from uuid import UUID

from tests.safeguards.catalogue import NEVER_ENDS, NOTHING, Patch, safeguard

ENGINE = "processor.protocol.engine.Engine"
ASSIGNMENTS = "processor.protocol.rebalances.Rebalances"
RECORDS = "processor.protocol.open_records.OpenRecords"
REGISTERING = "processor.protocol.registering.Registering"
PARTITION = "processor.protocol.partition.Partition"
WARM_UP = "processor.protocol.registering.Rules.warm_up"


def cell(patch: Patch, state: str, step: str, target: str | None) -> None:
    """Change one cell of the transition table; None ignores the step."""
    table = resolve_name("processor.protocol.record")
    rows = [list(row) for row in table._CELLS]
    rows[table.State[state]][table.Step[step]] = None if target is None else table.State[target]
    patch.replace("processor.protocol.record._CELLS", tuple(tuple(row) for row in rows))


@safeguard("P2.2", at=f"{REGISTERING}.register", real=True, seeds=True, world=lambda w: w.eager())
def without_acknowledged_registrations(original, self, entries, now, *step):
    """A commit passes records whose wait records are only sent."""
    original(self, entries, now, *step)
    for entry in entries:
        entry.partition.make_safe(entry.number)


@safeguard("P2.1", at=f"{PARTITION}.committable", real=True, seeds=True, world=lambda w: w.eager(w.TOO_LARGE, w.FAST))
def without_contiguous_commits(_, self):
    """A commit goes up to the last safe record, whatever is open before it."""
    last = self._safe.rfind(b"\1")
    if last >= 0:
        return max(self.requested, self._offsets[last] + 1)
    return max(self.requested, self._offsets[0] if self._offsets else self.position)


def _refused_is_safe(patch: Patch, *states: str) -> None:
    @patch.around(f"{REGISTERING}.refused")
    def refused(original, self, event, now):
        original(self, event, now)
        if event.entry.state.name in states:
            event.entry.partition.make_safe(event.entry.number)


@safeguard("P1.2", "P2", real=True, seeds=True, world=lambda w: w.eager(w.TOO_LARGE, delays=1))
def without_dead_letters_before_commits(patch: Patch) -> None:
    """A commit passes a refused record of the warm-up before its dead letter is acknowledged."""
    _refused_is_safe(patch, "PUBLISHING")


@safeguard("P2.6", seeds=True, world=lambda w: w.deferred(w.TOO_LARGE))
def without_calls_before_commits(patch: Patch) -> None:
    """A commit passes a refused record whose call hasn't ended."""
    _refused_is_safe(patch, "READY_UNREGISTRABLE", "RUNNING_UNREGISTRABLE")


@safeguard("P1.2", "P1", NEVER_ENDS, at=f"{REGISTERING}.refused", seeds=True, world=lambda w: w.deferred(w.TOO_LARGE))
def without_late_refusals(original, self, event, now):
    """The engine ignores a refusal that arrives after the outcome."""
    if event.entry.state.name != "DONE_REGISTERING":
        original(self, event, now)


@safeguard("P2.6", at=f"{RECORDS}.fail", seeds=True, world=lambda w: w.eager(w.MALFORMED))
def without_dead_letters_of_unregistered_records(original, self, entry, letter):
    """An unregistered record counts as settled when its call fails."""
    failed = original(self, entry, letter)
    if failed and entry.state.name == "PUBLISHING":
        entry.partition.make_safe(entry.number)
    return failed


@safeguard("P7.15", at=f"{PARTITION}.uncommitted", seeds=True, world=lambda w: w.eager(w.FAST, w.FAST, bounds=(1,)))
def without_bound(*_):
    """The engine counts no uncommitted records."""
    return 0


@safeguard("P1.1", at=WARM_UP, real=True, seeds=True, world=lambda w: w.deferred(deaths=1))
def without_warm_up(*_):
    """A call starts before a commit covers its record, so a record that kills the process does so at every start."""
    return 0, 0


@safeguard("P1.18", at=WARM_UP, seeds=True)
def without_recorded_bound(original, self, assigned):
    """A process warms up by its own bound, whatever the previous owner's was."""
    records, end = original(self, assigned)
    return (self.uncommitted_max if 0 < records < math.inf else records), end


@safeguard("P1.18", at=WARM_UP, seeds=True)
def without_unknown_bounds(original, self, assigned):
    """A process takes an unknown bound for its own."""
    records, end = original(self, assigned)
    return min(records, self.uncommitted_max), end


@safeguard("P1.18", at=WARM_UP, seeds=True, world=lambda w: w.deferred(deaths=1, unknown_ends=True))
def without_unknown_ends(original, self, assigned):
    """An assignment whose log end is unknown doesn't warm up."""
    records, end = original(self, assigned)
    return records, (0 if math.isinf(end) else end)


@safeguard("P1.18", NOTHING, at=WARM_UP, real=True, seeds=True)
def without_end_of_warm_up(original, self, assigned):
    """A warm-up never ends.

    Without an end every call would wait for a commit, for as long as the assignment lasts.
    """
    return (math.inf, math.inf) if original(self, assigned)[0] else (0, 0)


@safeguard("P1.20", at=WARM_UP, seeds=True, world=lambda w: w.switched())
def without_warm_up_after_other_modes(original, self, assigned):
    """A process in `off` never warms up."""
    return (0, 0) if self.mode == "off" else original(self, assigned)


@safeguard(
    "P1.39",
    at="processor.protocol.registering.Rules.is_announced",
    seeds=True,
    world=lambda w: w.deferred(w.FAST, w.DEADLY, bounds=(2, 1), before=w.Committed(0, 1, "deferred")),
)
def without_announced_bounds(*_):
    """A process takes records of a partition before a commit names its mode and bound for the next owner."""
    return True


@safeguard("P1.1", at=f"{ENGINE}._registered", seeds=True, world=lambda w: w.eager(w.DEADLY))
def without_commits_before_calls(original, self, event, now):
    """A call of the warm-up starts when its record is registered."""
    for entry in event.entries:
        entry.warm_up = False
    original(self, event, now)


@safeguard("P1.21", at=f"{REGISTERING}.leave_held", seeds=True)
def without_expiry_of_uncovered_records(_, self, partition):
    """Held records of a partition that was given up are called, though no commit covers them."""
    if self._records.is_assigned(partition) or self._commits.may_cover_more(partition):
        return
    held = [entry for entry in self._held.pop(partition, ()) if entry.state.name == "HELD"]
    for entry in held:
        entry.take(resolve_name("processor.protocol.record.Step.RELEASE"))
    self._slots.add(held)


@safeguard("P1.3", at=f"{ENGINE}._calls_ended", real=True, seeds=True, world=lambda w: w.eager(w.FAILING))
def without_dead_letters_before_tombstones(original, self, event, now):
    """A tombstone is sent together with its dead letter."""
    original(self, event, now)
    early = [entry for entry, _ in event.calls if entry.state.name == "PUBLISHING_REGISTERED"]
    if early:
        self._effects.append(resolve_name("processor.protocol.effects.WriteTombstones")(early))


def _settles_early(patch: Patch, state: str, step: str) -> None:
    cell(patch, state, step, "SETTLED")
    cell(patch, "SETTLED", "REGISTERED", None)
    cell(patch, "SETTLED", "REFUSE", None)

    @patch.around("processor.protocol.record.Entry.take")
    def take(original, self, taken, outcome=None):
        is_early = self.state.name == state and taken.name == step
        took = original(self, taken, outcome)
        if is_early:
            self.lifetime = None
        return took


@safeguard("P1.22", seeds=True, world=lambda w: w.deferred())
def without_reports_before_settling(patch: Patch) -> None:
    """A record that is done before its wait record is acknowledged gets no tombstone."""
    _settles_early(patch, "RUNNING_REGISTERING", "SUCCEED")


@safeguard("P1.22", seeds=True, world=lambda w: w.deferred(w.FAILING))
def without_reports_after_dead_letters(patch: Patch) -> None:
    """A record that is dead-lettered before its wait record is acknowledged gets no tombstone."""
    _settles_early(patch, "PUBLISHING_REGISTERING", "PUBLISHED")


# The checker knows a registration by its computed wait ID, so it misses one.
@safeguard("P1.7", "P1", "P2", seeds=True, world=lambda w: w.eager(deaths=1))
def without_computed_wait_ids(patch: Patch) -> None:
    """A record has a new wait ID whenever it is polled."""
    numbers = iter(range(1 << 30))
    patch.replace("wait_registry.records.wait_id.wait_id", lambda *_: str(UUID(int=next(numbers))))


@safeguard("P1.6", at=f"{ASSIGNMENTS}._give_up", real=True, seeds=True, world=lambda w: w.moved(w.FAST, w.FAST))
def without_registrations_for_the_next_owner(original, self, partitions, targets):
    """A process writes tombstones for the records that the next owner handles."""
    registered = [e for e in self._records if e.partition in partitions and e.state.name == "READY_REGISTERED"]
    original(self, partitions, targets)
    dropped = [entry for entry in registered if entry.state.name == "DROPPED"]
    if dropped:
        self._effects.append(resolve_name("processor.protocol.effects.WriteTombstones")(dropped))


@safeguard("P1.4", at=f"{RECORDS}.in_flight", seeds=True, world=lambda w: w.moved())
def without_flush_at_revocations(original, self, places=None):
    """A process gives partitions up without waiting for its wait records in flight."""
    return 0 if places is not None else original(self)


@safeguard("P1.4", seeds=True, world=lambda w: w.moved(w.FAST, w.FAST))
def without_last_commit_before_unstarted_records(patch: Patch) -> None:
    """The last commit passes the records that are left to the next owner."""
    lifecycle = resolve_name("processor.protocol.record")
    before: dict[Any, int] = {}

    @patch.around(f"{PARTITION}.last_commit")
    def last_commit(_, self, first_unstarted):
        before[self] = self.requested
        self.requested = max(self.requested, self.committable)
        return self.requested

    @patch.around(f"{ASSIGNMENTS}._give_up")
    def give_up(original, self, partitions, targets):
        for entry in [e for e in self._records if e.partition in partitions and e.state in lifecycle.UNSTARTED]:
            if entry.offset >= before.get(entry.partition, entry.partition.requested):
                entry.take(lifecycle.Step.DROP)
                self._records.close([entry])
        original(self, partitions, targets)


@safeguard("P1.4", at=f"{ASSIGNMENTS}._give_up", real=True, seeds=True, world=lambda w: w.moved(w.FAST, w.FAST))
def without_work_on_committed_records(original, self, partitions, targets):
    """A process that gives a partition up drops also what a commit has passed, and no other process handles it."""
    original(self, partitions, dict.fromkeys(partitions, resolve_name("processor.protocol.partition.UNKNOWN")))


@safeguard("O1.5", "O1", seeds=True, first=4_400, world=lambda w: w.after_eager(losses=1))
def without_renewals_of_the_next_owner(patch: Patch) -> None:
    """A process in `off` keeps a record that is being registered again when its partition is given up."""
    lifecycle = resolve_name("processor.protocol.record")
    patch.replace("processor.protocol.rebalances.KEPT", lifecycle.KEPT - {lifecycle.State.RENEWING})


@safeguard("P1.5", "P1", real=True)
def without_unanswered_commits(patch: Patch) -> None:
    """A commit without an answer counts as failed, although it may have been done."""

    def changed(original, self, event, now):
        requested = {partition: partition.requested for partition in self._records.partitions.values()}
        for partition in requested:
            partition.requested = partition.confirmed
        original(self, event, now)
        for partition, offset in requested.items():
            partition.requested = max(partition.requested, offset)

    patch.around(f"{ASSIGNMENTS}.revoking")(changed)
    patch.around(f"{ASSIGNMENTS}.lost")(changed)


@safeguard("P1.4", seeds=True, world=lambda w: w.off(moves=1, calm=True))
def without_cancellation_of_dropped_calls(patch: Patch) -> None:
    """Calls of unregistered records continue after their partition was given up."""
    cell(patch, "RUNNING", "DROP", None)


@safeguard("P1.19", at=f"{ENGINE}._calls_ended", world=lambda w: w.deferred(w.FAST, w.FAST, losses=1, slots=2))
def without_news_before_registrations(original, self, event, now):
    """Slow records are registered at any time, not only after a poll."""
    original(self, event, now)
    self._registering.register_slow(now)


@safeguard("P1.19", seeds=True)
def without_proof_of_ownership(patch: Patch) -> None:
    """Slow records are registered however long no commit was confirmed."""
    patch.replace("processor.protocol.registering.OWNERSHIP_S", math.inf)


@safeguard("P1.19", NOTHING, at="processor.protocol.commits.Commits.prove", real=True, seeds=True)
def without_commits_as_proof(*_):
    """The engine never commits the same offset again.

    Slow records of a partition where nothing moves are registered later, and their commit waits for calls.
    """


@safeguard("P1.1", at="processor.protocol.commits.Commits._sent_to")
def without_order_of_answers(original, self, *answer):
    """A late answer counts as one to a later commit of the same offset, before which the partition was another's."""
    self._sent.reverse()
    found = original(self, *answer)
    self._sent.reverse()
    return found
