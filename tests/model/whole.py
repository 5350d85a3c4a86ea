"""The whole protocol for one record: processors, log, sink and sweepers together, under tighter bounds.

The processors' slice writes into the log of the sweepers' slice; neither has an environment of its own any more. What
the two abstract stays abstracted: the sink is one step, and nothing is compacted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.model.explorer import State as AnyState
from tests.model.explorer import Step
from tests.model.processing.group import group_steps
from tests.model.processing.instance import instance_steps
from tests.model.processing.lingering import landing, losing
from tests.model.processing.producer import land, letters
from tests.model.processing.slice import Processing
from tests.model.processing.state import DONE, LETTER, State
from tests.model.sweeping.partition import STANDS, TOMBSTONE, WAIT, view_of
from tests.model.sweeping.slice import Sweeping
from tests.model.sweeping.state import LETTERS, LOG, changed


@dataclass(frozen=True, slots=True)
class Whole:
    """Both slices, of one record; a state is a pair of theirs."""

    name: str = "whole"
    processing: Processing = field(default_factory=lambda: Processing(records=1, revocations=0, crashes=1))
    sweeping: Sweeping = field(default_factory=lambda: Sweeping(waits=(), faults=1, appends=0, restores=0))

    def initial(self) -> AnyState:
        return (self.processing.initial(), self.sweeping.initial())

    def canonical(self, state: AnyState) -> AnyState:
        return (self.processing.canonical(state[0]), self.sweeping.canonical(state[1]))

    def broken(self, state: AnyState) -> str | None:
        work, rest = state
        fate = work.fates[0]
        exported = any(status == STANDS for _, status in rest[LETTERS])
        if work.committed and not (fate[DONE] or fate[LETTER] or exported or view_of(rest[LOG], len(rest[LOG]))):
            return "P1: the record is lost if its process dies now: not registered, done, dead-lettered or exported"
        return self.processing.broken(work)

    def settled(self, state: AnyState) -> bool:
        work, rest = state
        return self.processing.settled(work._replace(faulted=1)) and self.sweeping.settled(rest)

    def steps(self, state: AnyState) -> list[Step]:
        work, rest = state
        steps = [(what, fault, _pair(work, after)) for what, fault, after in self.sweeping.steps(rest)]
        inner: list[Step] = []
        group_steps(self.processing, work, inner)
        for which, instance in enumerate(work.instances):
            if instance is not None:
                letters(self.processing, work, which, instance, inner)
                instance_steps(self.processing, work, which, instance, inner)
                self._landing(work, rest, which, steps)
        self._lingering(work, rest, inner, steps)
        steps += [(what, fault, (after, rest)) for what, fault, after in inner]
        return steps

    def _landing(self, work: State, rest: AnyState, which: int, steps: list[Step]) -> None:
        instance = work.instances[which]
        if instance is None or not instance.queues[0]:
            return
        landed: list[Step] = []
        land(self.processing, work, which, instance, 0, landed)
        after = _written(rest, instance.queues[0][0])
        steps += [(what, fault, (one, after) if type(one) is not str else one) for what, fault, one in landed]

    def _lingering(self, work: State, rest: AnyState, inner: list[Step], steps: list[Step]) -> None:
        for which, sent in enumerate(work.sent):
            inner.append(losing(work, which, 0))
            what, fault, after = landing(work, which, 0)
            steps.append((what, fault, (after, _written(rest, sent[0][0]))))


def _written(rest: AnyState, message: str) -> AnyState:
    kind = TOMBSTONE if message == "T" else WAIT
    return changed(rest, (LOG, (*rest[LOG], (kind, 0, STANDS, 0))))


def _pair(work: State, after: AnyState | str) -> AnyState | str:
    return after if type(after) is str else (work, after)
