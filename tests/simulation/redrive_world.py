"""Executors of a group's redrives and the operations topic with its transactions; the executors' code is the product's.

Operators begin jobs for the same dead letters, and resume them. The sink is one step that brings the tables on by an
offset; a restored Postgres puts them back. An executor may die between any two steps, a commit's answer may be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tests.simulation.coordinator import Process, State, TransactionWorld, without_entry
from tests.simulation.exhaustive import Step
from tests.simulation.redrive_clients import URGENT, job_of, redrive
from tests.simulation.replay import Answers, Outcome, Replays
from tests.simulation.wait_log import ABORTED, COMMITTED, stable_end
from wait_registry.records.operation import Changed, decode_event, encode_event
from wait_registry.records.operation import State as JobState


class Event(NamedTuple):
    """An entry of the operations topic: its value, and its status by the numbers of the wait log."""

    value: bytes
    status: int = COMMITTED


@dataclass(eq=False)
class RedriveWorld(TransactionWorld):
    """The bounds.

    Args:
        name: with the bounds, for tables.
        jobs: of each executor; two with one job are two attempts to resume it.
        letters: how many dead letters there are.
        faults: deaths and commits whose answer doesn't come, at most.
        restores: of Postgres, at most.
        holds: how often a job pauses by itself, or waits for its canary, at most.
    """

    name: str = "redrive"
    jobs: tuple[str, ...] = ("job-1", "job-2")
    letters: int = 1
    faults: int = 1
    restores: int = 1
    holds: int = 0

    def __post_init__(self) -> None:
        self._replays = Replays(URGENT)

    def initial(self) -> State:
        begun = tuple(Event(encode_event(job_of(name))) for name in sorted(set(self.jobs)))
        processes = (Process(),) * len(self.jobs)
        return State(begun, (), len(begun), processes, (), self.faults, self.restores, holds=self.holds)

    def canonical(self, state: State) -> State:
        """Count offsets without aborted events, on which no step acts."""
        for at in reversed(range(len(state.log))):
            if state.log[at].status == ABORTED:
                state = without_entry(state, at)
        return state

    def settled(self, state: State) -> bool:
        if any(process.answers for process in state.processes) or any(each.is_open for each in state.transactions):
            return False
        if state.position < len(state.log):
            return False
        redriven = sorted(wait_id for wait_id, status in state.sent if status == COMMITTED)
        return set(self.jobs) == self._finished(state) and redriven == list(range(self.letters))

    def _finished(self, state: State) -> set[str]:
        events = (decode_event(event) for event, status in state.log if status == COMMITTED)
        return {event.job for event in events if isinstance(event, Changed) and event.state is JobState.FINISHED}

    def steps(self, state: State) -> list[Step]:
        steps = [*self._sink(state), *self._coordinator(state)]
        for which, process in enumerate(state.processes):
            job = self.jobs[which]
            if process.answers or job not in self._finished(state):
                steps += self._process(state, which, self._name(which), job, partial(redrive, job))
        return steps

    # ---- the executors

    def _name(self, which: int) -> str:
        return f"executor {which} of {self.jobs[which]}"

    def _written(self, state: State, status: int, sent: tuple[tuple[str, Any, int], ...]) -> State:
        events = [Event(what, status) for kind, what, _ in sent if kind == "event"]
        records = [(what, status) for kind, what, _ in sent if kind == "record"]
        return state._replace(log=(*state.log, *events), sent=tuple(sorted((*state.sent, *records))))

    def _problem(self, state: State, which: int, status: int) -> str | None:
        visible = Counter(wait_id for wait_id, at in state.sent if at in (COMMITTED, status))
        twice = next((wait_id for wait_id, at in state.sent if at == status and visible[wait_id] > 1), None)
        return None if twice is None else f"R1: delivery {'ab'[twice]} is redriven twice"

    # ---- effects: what happened, whether it is a fault, the state after it, the answer

    def _tables(self, state: State, which: int, _: Answers) -> Iterator[Outcome]:
        events = tuple(event for event, status in state.log[: state.position] if status == COMMITTED)
        yield f"sees position {state.position}", False, state, (state.position, events, self.letters)

    def _end(self, state: State, which: int, answers: Answers, stable: bool) -> Iterator[Outcome]:
        if not stable:
            yield f"lists the log's end, {len(state.log)}", False, state, len(state.log)
        elif (end := stable_end(state.log)) >= answers[-1][1]:  # else the executor waits
            yield f"finds the log stable up to {end}", False, state, answers[-1][1]

    def _poll(self, state: State, which: int, answers: Answers, begin: int, _: bool) -> Iterator[Outcome]:
        end = answers[-1][1]  # a poll may bring more, but need not
        found = tuple((at, state.log[at].value) for at in range(begin, end) if state.log[at].status == COMMITTED)
        yield f"reads from {begin} to {end}", False, state, (found, end)

    def _check(self, state: State, which: int, _: Answers) -> Iterator[Outcome]:
        yield "may continue", False, state, (True, "")
        if state.holds:
            held = state._replace(holds=state.holds - 1)
            yield "is to pause", False, held, (False, "too many came back")
            yield "is to wait", False, held, (False, "")
