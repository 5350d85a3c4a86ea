"""The group: assignment, orderly revocation, partitions lost to a silent member, crashes and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.explorer import Step
from tests.model.processing.lingering import leaving_requests
from tests.model.processing.state import (
    OWNER,
    STALE,
    WITHOUT,
    Entry,
    EntryState,
    Instance,
    State,
    fewer,
    owned,
    prefix,
    set_at,
)

if TYPE_CHECKING:
    from tests.model.processing.slice import Processing

NAMES = ("processor A", "processor B")


def group_steps(model: Processing, state: State, steps: list[Step]) -> None:
    """Add what the group may do next."""
    free = not owned(state)
    for which, instance in enumerate(state.instances):
        name = NAMES[which]
        if instance is None:
            steps.append((f"{name} starts", False, _put(state, which, model.new_instance())))
            continue
        if instance.role == WITHOUT and free:
            at = state.committed
            taken = instance._replace(role=OWNER, position=at, confirmed=at, requested=at, asked=-1, applied=0, gate=0)
            steps.append((f"{name} is assigned the partition from {at}", False, _put(state, which, taken)))
        elif instance.role == OWNER:
            _taken_away(model, state, which, instance, steps)
        elif instance.role == STALE:
            given_up = _divided(model, instance, instance.requested)
            steps.append((f"{name} learns that its partition was lost", False, _put(state, which, given_up)))
        if state.crashes:
            dead = _put(state, which, None)._replace(faulted=1, crashes=fewer(state.crashes))
            steps.append((f"{name} dies", True, dead))
            leaving_requests(dead, instance, f"{name} dies", steps)


def _put(state: State, which: int, instance: Instance | None) -> State:
    return state._replace(instances=set_at(state.instances, which, instance))


def _taken_away(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    name = NAMES[which]
    if state.losses:
        stale = _put(state, which, instance._replace(role=STALE))._replace(losses=state.losses - 1, faulted=1)
        steps.append((f"{name} is silent for too long: the group takes its partition", True, stale))
    if not state.revocations:
        return
    state = state._replace(revocations=state.revocations - 1)
    on_the_way = [entry for entry in instance.entries if not entry[1] and entry[2] in _ON_THE_WAY]
    if not on_the_way or not model.revoke_flushes:
        _revoked(model, state, which, instance, steps, f"{name} gives the partition up")
    elif model.flush_fails:
        state = state._replace(faulted=1)
        _revoked(model, state, which, instance, steps, f"{name} gives the partition up before all is acknowledged")


_ON_THE_WAY = (EntryState.REGISTERING, EntryState.REFUSED, EntryState.RENEWING)


def _revoked(model: Processing, state: State, which: int, instance: Instance, steps: list[Step], what: str) -> None:
    unstarted = [record for record, old, how in instance.entries if not old and how == EntryState.HELD]
    end = prefix(instance)
    if model.commit_stops_at_unstarted:
        end = min([end, *[record for record in unstarted if record >= instance.requested]])
    target = max(instance.requested, end)
    given_up = _divided(model, instance, target if model.commit_stops_at_unstarted else instance.requested)
    if not model.no_tombstone_on_revoke:
        given_up = _with_tombstones(given_up, [record for record in unstarted if record >= target])
    committed = _put(state, which, given_up)._replace(committed=max(state.committed, target))
    steps.append((f"{what}, committed is {committed.committed}", True, committed))
    if target > instance.confirmed:
        refused = _put(state, which, given_up)
        steps.append((f"{what}, its last commit is refused", True, refused._replace(faulted=1)))


def _divided(model: Processing, instance: Instance, offset: int) -> Instance:
    """Drop what is the next owner's: what hasn't started, at or above an offset; all else stays, and its gate opens."""
    kept: list[Entry] = []
    queues = list(instance.queues)
    for record, old, how in instance.entries:
        next_owners = record >= offset or not model.committed_is_kept
        if not old and how == EntryState.REGISTERING:
            queues[record] = queues[record].replace("W", "w")
        elif old or how != EntryState.HELD or not next_owners:
            kept.append((record, 1, how))
    return Instance(WITHOUT, 0, 0, 0, -1, 0, 1, tuple(sorted(kept)), tuple(queues))


def _with_tombstones(instance: Instance, records: list[int]) -> Instance:
    queues = tuple(queue + "T" * (record in records) for record, queue in enumerate(instance.queues))
    return instance._replace(queues=queues)
