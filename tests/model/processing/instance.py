"""What a process does with its records: consume, commit, start, settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.explorer import Step
from tests.model.processing.group import NAMES
from tests.model.processing.lingering import leaving_requests
from tests.model.processing.state import (
    DONE,
    KILLS,
    MOST_KILLS,
    OWNER,
    STALE,
    WITHOUT,
    Entry,
    EntryState,
    Instance,
    State,
    highest,
    prefix,
    set_at,
)

if TYPE_CHECKING:
    from tests.model.processing.slice import Processing


def instance_steps(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    """Add what an instance may do next."""
    if instance.role != WITHOUT:
        _consume(model, state, which, instance, steps)
        _commit(model, state, which, instance, steps)
    for entry in instance.entries:
        if entry[2] == EntryState.HELD:
            _start(model, state, which, instance, entry, steps)
            _renew(state, which, instance, entry, steps)
        elif entry[2] == EntryState.STARTED:
            _settle(model, state, which, instance, entry, steps)


def _put(state: State, which: int, instance: Instance | None) -> State:
    return state._replace(instances=set_at(state.instances, which, instance))


def queued(instance: Instance, record: int, message: str) -> Instance:
    """Return the instance after it has handed a message to its producer."""
    return instance._replace(queues=set_at(instance.queues, record, instance.queues[record] + message))


def moved(instance: Instance, entry: Entry, how: int | None) -> Instance:
    """Return the instance with a record's entry one step on, or without it."""
    entries = list(instance.entries)
    entries.remove(entry)
    if how is not None:
        entries.append((entry[0], entry[1], how))
    return instance._replace(entries=tuple(sorted(entries)))


def _consume(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    record = instance.position
    if record == model.records:
        return
    refused = EntryState.REFUSED if model.refused_waits_for_letter else EntryState.LETTERING
    how = refused if record in model.oversized else EntryState.REGISTERING
    taken = instance._replace(position=record + 1, entries=tuple(sorted((*instance.entries, (record, 0, how)))))
    if how == EntryState.REGISTERING:
        taken = queued(taken, record, "W")
    steps.append((f"{NAMES[which]} consumes record {record}", False, _put(state, which, taken)))


def _commit(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    name = NAMES[which]
    if instance.asked < 0:
        target = _target(model, instance)
        if target > instance.confirmed:
            asks = instance._replace(asked=target, applied=0, requested=max(instance.requested, target))
            steps.append((f"{name} asks to commit {target}", False, _put(state, which, asks)))
    elif instance.applied:
        gate = instance.gate or int(_covers_held(instance))
        told = instance._replace(confirmed=instance.asked, asked=-1, applied=0, gate=gate)
        steps.append((f"{name} learns that {instance.asked} is committed", False, _put(state, which, told)))
        if instance.role == STALE:
            unsure = _put(state, which, instance._replace(asked=-1, applied=0))
            steps.append((f"{name} had no answer, asks again and is refused, although all is committed", False, unsure))
    elif instance.role == OWNER:
        done = _put(state, which, instance._replace(applied=1))._replace(committed=instance.asked)
        steps.append((f"the coordinator commits {instance.asked} for {name}", False, done))
    else:
        refused = instance._replace(asked=-1)
        steps.append((f"the coordinator refuses the commit of {name}", False, _put(state, which, refused)))


def _target(model: Processing, instance: Instance) -> int:
    if not model.commit_waits_for_acknowledgment:
        return instance.position
    return prefix(instance) if model.commit_is_contiguous else highest(instance)


def _covers_held(instance: Instance) -> bool:
    """Return whether the first record is covered: with one slot, all behind it waits for the end of one."""
    return any(not old and how == EntryState.HELD and record < instance.asked for record, old, how in instance.entries)


def _start(model: Processing, state: State, which: int, instance: Instance, entry: Entry, steps: list[Step]) -> None:
    record, old, _ = entry
    if model.warm_up and not old and not instance.gate and record >= instance.confirmed:
        return
    if not old and record >= prefix(instance):
        return  # only the contiguous prefix is handed to the workers
    if record in model.deadly:
        fate = set_at(state.fates[record], KILLS, min(state.fates[record][KILLS] + 1, MOST_KILLS))
        killed = _put(state, which, None)._replace(fates=set_at(state.fates, record, fate), faulted=1)
        what = f"{NAMES[which]} starts record {record}, which kills it"
        steps.append((what, False, killed))
        leaving_requests(killed, instance, what, steps)
    else:
        started = moved(instance, entry, EntryState.STARTED)
        steps.append((f"{NAMES[which]} starts the handler of record {record}", False, _put(state, which, started)))


def _renew(state: State, which: int, instance: Instance, entry: Entry, steps: list[Step]) -> None:
    if state.renewals:
        renewing = queued(moved(instance, entry, EntryState.RENEWING), entry[0], "R")
        after = _put(state, which, renewing)._replace(renewals=state.renewals - 1)
        steps.append((f"{NAMES[which]} registers record {entry[0]} again, its time is short", True, after))


def _settle(model: Processing, state: State, which: int, instance: Instance, entry: Entry, steps: list[Step]) -> None:
    record = entry[0]
    fate = set_at(state.fates[record], DONE, 1)
    done = queued(moved(instance, entry, None), record, "T")
    after = _put(state, which, done)._replace(fates=set_at(state.fates, record, fate))
    steps.append((f"the handler of record {record} returns to {NAMES[which]}", False, after))
    if model.failing:
        failed = moved(instance, entry, EntryState.LETTERING)
        if not model.tombstone_waits_for_letter:
            failed = queued(failed, record, "T")
        what = f"the handler of record {record} fails at {NAMES[which]}, which sends its dead letter"
        steps.append((what, False, _put(state, which, failed)))
