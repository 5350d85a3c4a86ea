"""Take one rule of ordering out of the real engine: each function removes the rule after which it is named."""

# ruff: noqa: SLF001 - the rules are the private methods of the engine
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest import MonkeyPatch

from processor.dispatch.scheduler import Ordered
from processor.engine import Engine
from processor.events import Cancel, Polled
from processor.lifecycle import Entry
from processor.partition import Partition


def earlier_is_awaited(patch: MonkeyPatch) -> None:
    """Start records whatever is before them in their lane."""
    patch.setattr(Ordered, "enter", lambda self, entries: None)


def _may_leave_twice(patch: MonkeyPatch) -> None:
    leave = Ordered.leave

    def changed(self: Ordered, entries: Iterable[Entry]) -> None:
        leave(self, [entry for entry in entries if entry in self._lanes.get(self._lane_of(entry), ())])

    patch.setattr(Ordered, "leave", changed)


def malformed_is_awaited(patch: MonkeyPatch) -> None:
    """Let a record start while the dead letter of an earlier malformed one isn't acknowledged."""
    _may_leave_twice(patch)
    pass_on = Engine._pass_malformed_on

    def changed(self: Engine, entries: list[Entry], event: Polled) -> list[Entry]:
        kept = pass_on(self, entries, event)
        self._slots.leave([entry for entry in entries if entry not in kept])
        return kept

    patch.setattr(Engine, "_pass_malformed_on", changed)


def letter_is_awaited(patch: MonkeyPatch) -> None:
    """Let a record start when the call of the one before has failed, before its dead letter is acknowledged."""
    _may_leave_twice(patch)
    fail = Engine._fail

    def changed(self: Engine, entry: Entry, outcome: Any) -> bool:
        self._slots.leave([entry])
        return fail(self, entry, outcome)

    patch.setattr(Engine, "_fail", changed)


def cancelled_call_is_awaited(patch: MonkeyPatch) -> None:
    """Let a record start while an earlier assignment's cancelled call runs on."""
    _may_leave_twice(patch)
    give_up = Engine._give_up

    def changed(self: Engine, partitions: list[Partition], targets: dict[Partition, int]) -> None:
        give_up(self, partitions, targets)
        for effect in self._effects:
            if isinstance(effect, Cancel):
                self._slots.leave(effect.entries)

    patch.setattr(Engine, "_give_up", changed)


def order_is_that_of_polling(patch: MonkeyPatch) -> None:
    """Let records wait for those only that could start before them, not for those that are held in a warm-up."""
    _may_leave_twice(patch)
    enter, add = Ordered.enter, Ordered.add

    def changed(self: Ordered, entries: Sequence[Entry]) -> None:
        enter(self, entries)
        add(self, entries)

    patch.setattr(Ordered, "enter", lambda self, entries: None)
    patch.setattr(Ordered, "add", changed)
