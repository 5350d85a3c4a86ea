"""Executors of a group's redrives and the operations topic with its transactions; the executors' code is the product's.

Operators begin jobs for the same dead letters, and resume them. The sink is one step that brings the tables on by an
offset; a restored Postgres puts them back. An executor may die between any two steps, a commit's answer may be lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.exhaustive import Step
from tests.simulation.redrive_clients import URGENT, job_of, redrive
from tests.simulation.replay import Answers, Effect, Failure, Outcome, Replays
from wait_registry.errors import FencedError
from wait_registry.records.operation import Changed, decode_event, encode_event
from wait_registry.records.operation import State as JobState

FENCED = Failure(KafkaException(KafkaError(KafkaError._FENCED)))
NO_ANSWER = Failure(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
COMMITTED, ABORTED, OPEN = range(3)


class Process(NamedTuple):
    """An executor so far, none at rest; `current` is the transactional ID of a producer that nothing has fenced yet.

    ``asked`` is a commit that is on its way; it outlives the executor.
    """

    answers: Answers = ()
    current: str = ""
    asked: bool = False


class Transaction(NamedTuple):
    """Of a transactional ID: whether it is open, and whether its commit is decided without markers yet."""

    id: str
    is_open: bool = False
    is_decided: bool = False


class State(NamedTuple):
    """``log`` has events, ``sent`` wait IDs in the redelivery topic, each with its status: `OPEN` + transaction."""

    log: tuple[tuple[bytes, int], ...]
    sent: tuple[tuple[int, int], ...]
    position: int
    processes: tuple[Process, ...]
    transactions: tuple[Transaction, ...]
    faults: int
    restores: int
    holds: int


@dataclass(eq=False)
class RedriveWorld:
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
        begun = tuple((encode_event(job_of(name)), COMMITTED) for name in sorted(set(self.jobs)))
        return State(begun, (), len(begun), (Process(),) * len(self.jobs), (), self.faults, self.restores, self.holds)

    def canonical(self, state: State) -> State:
        """Count offsets without aborted events, on which no step acts."""
        for at in reversed(range(len(state.log))):
            if state.log[at][1] == ABORTED:
                state = _without_event(state, at)
        return state

    def broken(self, state: State) -> str | None:
        return None  # what is broken is seen when a transaction is committed

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
            steps += self._process(state, which, process)
        return steps

    # ---- the executors

    def _process(self, state: State, which: int, process: Process) -> Iterator[Step]:
        job = self.jobs[which]
        if not process.answers and job in self._finished(state):
            return
        name = f"executor {which} of {job}"

        def perform(state: State, effect: Effect, answers: Answers) -> Iterator[Outcome]:
            return getattr(self, f"_{effect[0]}")(state, which, answers, *effect[1:])  # type: ignore[no-any-return]

        for what, fault, after, answers, ended in self._replays.steps(
            name, (job,), lambda: redrive(job), process.answers, state, perform
        ):
            if isinstance(after, str):
                yield f"{name}: {what}", fault, after
            elif ended is not None:
                assert ended.error is None or isinstance(ended.error, FencedError), ended.error
                yield f"{name}: {what}, and ends", fault, _at_rest(after, which)
            else:
                yield f"{name}: {what}", fault, _put(after, which, answers=answers)
        if process.answers and state.faults:
            dead = _at_rest(state, which)._replace(faults=state.faults - 1)
            yield f"{name} dies, what it has asked for stays on its way", True, dead

    # ---- effects: what happened, whether it is a fault, the state after it, the answer

    def _fence(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        if all(each.id != id_ for each in state.transactions):
            state = state._replace(transactions=(*state.transactions, Transaction(id_)))
        number = _number_of(state, id_)
        if not state.transactions[number].is_decided:  # else the coordinator answers when the markers are written
            yield "fences", False, _put(_aborted(state, number), which, current=id_), None

    def _view(self, state: State, which: int, _: Answers) -> Iterator[Outcome]:
        events = tuple(event for event, status in state.log[: state.position] if status == COMMITTED)
        yield f"sees position {state.position}", False, state, (state.position, events, self.letters)

    def _end(self, state: State, which: int, answers: Answers, stable: bool) -> Iterator[Outcome]:
        if not stable:
            yield f"lists the log's end, {len(state.log)}", False, state, len(state.log)
        elif (end := _stable_end(state)) >= answers[-1][1]:  # else the executor waits
            yield f"finds the log stable up to {end}", False, state, answers[-1][1]

    def _poll(self, state: State, which: int, answers: Answers, begin: int) -> Iterator[Outcome]:
        end = answers[-1][1]  # a poll may bring more, but need not
        found = tuple((at, state.log[at][0]) for at in range(begin, end) if state.log[at][1] == COMMITTED)
        yield f"reads from {begin} to {end}", False, state, (found, end)

    def _look(self, state: State, which: int, _: Answers) -> Iterator[Outcome]:
        yield "may continue", False, state, (True, "")
        if state.holds:
            held = state._replace(holds=state.holds - 1)
            yield "is to pause", False, held, (False, "too many came back")
            yield "is to wait", False, held, (False, "")

    def _write(self, state: State, which: int, _: Answers, id_: str, sent: tuple[Any, ...]) -> Iterator[Outcome]:
        if state.processes[which].current != id_:
            yield "is fenced", False, state, FENCED
            return
        number = _number_of(state, id_)
        if state.transactions[number].is_decided:
            return  # the coordinator makes it wait for the markers
        events = tuple((what, OPEN + number) for kind, what in sent if kind == "event")
        records = tuple((what, OPEN + number) for kind, what in sent if kind == "record")
        after = state._replace(log=(*state.log, *events), sent=tuple(sorted((*state.sent, *records))))
        yield "writes", False, _with(after, number, Transaction(id_, is_open=True)), None

    def _commit(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        if state.processes[which].current == id_:
            yield "asks to commit", False, _put(state, which, asked=True), None
        else:
            yield "is fenced", False, state, FENCED

    def _answer(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        process = state.processes[which]
        if not process.asked:
            committed = process.current == id_
            yield "has committed" if committed else "is fenced", False, state, None if committed else FENCED
        if state.faults:
            yield "gets no answer", True, state._replace(faults=state.faults - 1), NO_ANSWER

    # ---- the environment

    def _sink(self, state: State) -> Iterator[Step]:
        at = state.position
        if at < _stable_end(state):
            yield f"the sink brings the tables from {at} to {at + 1}", False, state._replace(position=at + 1)
        if state.restores:
            for earlier in range(at):
                after = state._replace(position=earlier, restores=state.restores - 1)
                yield f"Postgres is restored to position {earlier}", True, after

    def _coordinator(self, state: State) -> Iterator[Step]:
        for number, transaction in enumerate(state.transactions):
            if transaction.is_decided:
                yield "the markers of the committed transaction are written", False, _closed(state, number, COMMITTED)
            elif transaction.is_open:
                yield "the coordinator aborts the transaction at its timeout", False, _aborted(state, number)
                for which, process in enumerate(state.processes):
                    if process.asked and process.current == transaction.id:
                        yield f"the coordinator commits for executor {which}", False, _committed(state, number, which)


def _stable_end(state: State) -> int:
    return next((at for at, (_, status) in enumerate(state.log) if status >= OPEN), len(state.log))


def _committed(state: State, number: int, which: int) -> State | str:
    for wait_id, status in state.sent:
        others = [other for other, at in state.sent if other == wait_id and (at == COMMITTED or at == OPEN + number)]
        if status == OPEN + number and len(others) > 1:
            return f"R1: delivery {'ab'[wait_id]} is redriven twice"
    decided = state.transactions[number]._replace(is_decided=True)
    return _put(_with(state, number, decided), which, asked=False)


def _aborted(state: State, number: int) -> State:
    """Abort a transaction, if it is open, and raise the epoch: what its producers still ask for is refused."""
    transaction = state.transactions[number]
    if transaction.is_open:
        state = _closed(state, number, ABORTED)
    processes = [
        each._replace(current="", asked=False) if each.current == transaction.id else each for each in state.processes
    ]
    return state._replace(processes=tuple(processes))


def _closed(state: State, number: int, status: int) -> State:
    mine = OPEN + number
    log = tuple((event, status if at == mine else at) for event, at in state.log)
    kept = [(wait_id, at) for wait_id, at in state.sent if at != mine or status == COMMITTED]
    sent = tuple(sorted((wait_id, status if at == mine else at) for wait_id, at in kept))
    return _with(state._replace(log=log, sent=sent), number, Transaction(state.transactions[number].id))


def _number_of(state: State, id_: str) -> int:
    return next(number for number, each in enumerate(state.transactions) if each.id == id_)


def _put(state: State, which: int, **values: Any) -> State:
    processes = list(state.processes)
    processes[which] = processes[which]._replace(**values)
    return state._replace(processes=tuple(processes))


def _at_rest(state: State, which: int) -> State:
    """Throw away all that an executor knows; what it has asked for stays on its way."""
    process = state.processes[which]
    return _put(state, which, answers=(), current=process.current if process.asked else "")


def _with(state: State, number: int, transaction: Transaction) -> State:
    transactions = list(state.transactions)
    transactions[number] = transaction
    return state._replace(transactions=tuple(transactions))


def _without_event(state: State, at: int) -> State:
    """Return the state without an event of the log; offsets behind it, also those in answers, are one less."""

    def moved(offset: int) -> int:
        return offset - 1 if offset > at else offset

    def answer(kind: str, told: Any) -> Any:
        if kind == "view":
            return (moved(told[0]), *told[1:])
        if kind == "end":
            return moved(told)
        if kind == "poll":
            return tuple((moved(offset), event) for offset, event in told[0]), moved(told[1])
        return told

    processes = [
        each._replace(answers=tuple((kind, answer(kind, told)) for kind, told in each.answers))
        for each in state.processes
    ]
    log, position = (*state.log[:at], *state.log[at + 1 :]), moved(state.position)
    return state._replace(log=log, position=position, processes=tuple(processes))
