"""The producer: what it was handed lands when it lands, in order for each wait id, once (idempotence)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.explorer import Step
from tests.model.processing.group import NAMES
from tests.model.processing.instance import moved, queued
from tests.model.processing.state import LETTER, REGISTERED, STANDING, EntryState, Instance, State, set_at

if TYPE_CHECKING:
    from tests.model.processing.slice import Processing


def producer_steps(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    """Add what may land next of what an instance has sent."""
    for record, queue in enumerate(instance.queues):
        if queue:
            land(model, state, which, instance, record, steps)
    letters(model, state, which, instance, steps)


def letters(model: Processing, state: State, which: int, instance: Instance, steps: list[Step]) -> None:
    """Add the landing of each dead letter."""
    for entry in instance.entries:
        if entry[2] in (EntryState.LETTERING, EntryState.REFUSED):
            _letter(model, state, which, instance, entry, steps)


def _after(state: State, which: int, instance: Instance, record: int, *changes: tuple[int, int]) -> State:
    fate = state.fates[record]
    for field, value in changes:
        fate = set_at(fate, field, value)
    return state._replace(instances=set_at(state.instances, which, instance), fates=set_at(state.fates, record, fate))


def land(model: Processing, state: State, which: int, instance: Instance, record: int, steps: list[Step]) -> None:
    """Add the landing of the first of a record's messages."""
    message, rest = instance.queues[record][0], instance.queues[record][1:]
    left = instance._replace(queues=set_at(instance.queues, record, rest))
    standing, wait_id = state.fates[record][STANDING], model.wait_id(which)
    if message == "T":
        others = standing & ~wait_id
        what = f"the tombstone of record {record} from {NAMES[which]} lands"
        if others and not _at_work(state, 1 - which, record):
            steps.append((what, False, f"P3: record {record} is finished, and stays registered under another wait id"))
        else:
            steps.append((what, False, _after(state, which, left, record, (STANDING, others))))
        return
    if message != "w":
        waiting = EntryState.REGISTERING if message == "W" else EntryState.RENEWING
        entry = next(entry for entry in left.entries if entry[0] == record and entry[2] == waiting)
        left = moved(left, entry, EntryState.HELD)
    what = f"the {'renewed ' * (message == 'R')}wait record of record {record} from {NAMES[which]} lands"
    steps.append((what, False, _after(state, which, left, record, (REGISTERED, 1), (STANDING, standing | wait_id))))


def _at_work(state: State, which: int, record: int) -> bool:
    instance = state.instances[which]
    if instance is None:
        return False
    return bool(instance.queues[record]) or any(entry[0] == record for entry in instance.entries)


def _letter(
    model: Processing, state: State, which: int, instance: Instance, entry: tuple[int, int, int], steps: list[Step]
) -> None:
    record, _, how = entry
    left = moved(instance, entry, None)
    if how == EntryState.LETTERING and model.tombstone_waits_for_letter:
        left = queued(left, record, "T")
    changes = ((LETTER, 1), (REGISTERED, 1)) if how == EntryState.REFUSED else ((LETTER, 1),)
    what = f"the dead letter of record {record} from {NAMES[which]} lands"
    steps.append((what, False, _after(state, which, left, record, *changes)))
