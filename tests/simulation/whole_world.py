"""One record, processes with the real engine, and the real sweep: the whole way of a record that expires.

The processes and what they may do are those of `processor_world`, the sweeper, its coordinator and the sink those of
`sweeper_world`. What processes write to the wait topic comes into the log that sink and sweeper read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.coordinator import State as Sweeps
from tests.simulation.exhaustive import Step
from tests.simulation.processor_world import ProcessorWorld, Situation
from tests.simulation.sweeper_world import SweeperWorld
from tests.simulation.wait_log import COMMITTED, TOMBSTONE, WAIT, Entry

State = tuple[Situation, Sweeps]
EXPORTED_ALONE = "an export is the record's only outcome"
EXPORTED_TOO = "a settled record is exported too"


@dataclass(eq=False)
class WholeWorld:
    """The bounds.

    Args:
        processor: those of the processes; one record.
        sweeper: those of the sweeper; nothing but processes may append.
        reaches: what must be seen at rest.
    """

    processor: ProcessorWorld
    sweeper: SweeperWorld
    reaches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name = self.processor.name
        self._known: dict[Situation, list[Step]] = {}
        self.reached: set[str] = set()

    def initial(self) -> State:
        return self.processor.initial(), self.sweeper.initial()

    def canonical(self, state: State) -> State:
        return state[0], self.sweeper.canonical(state[1])

    def broken(self, state: State) -> str | None:
        situation, sweeps = state
        if self.settled(state):
            if situation.unsettled and not sweeps.sent:
                return "P1: the record has no outcome, and its registration is gone without an export"
            if sweeps.sent:
                self.reached.add(EXPORTED_ALONE if situation.unsettled else EXPORTED_TOO)
        return situation.broken

    def settled(self, state: State) -> bool:
        return state[0].settled and self.sweeper.settled(state[1])

    def steps(self, state: State) -> list[Step]:
        situation, sweeps = state
        if situation not in self._known:
            self._known[situation] = self.processor.steps(situation)
        steps: list[Step] = []
        for what, fault, target in self._known[situation]:
            if isinstance(target, str):
                steps.append((what, fault, target))
                continue
            written = tuple(Entry(WAIT if is_wait else TOMBSTONE, 0, COMMITTED) for is_wait in target.written)
            steps.append((what, fault, (target, sweeps._replace(log=(*sweeps.log, *written)))))
        for what, fault, after in self.sweeper.steps(sweeps):
            steps.append((what, fault, after if isinstance(after, str) else (situation, after)))
        return steps
