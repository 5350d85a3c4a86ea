"""Processes that write to a log in transactions, and the transaction coordinator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from sink.position import Position
from tests.simulation.exhaustive import Step
from tests.simulation.replay import Answers, Effect, Failure, Outcome, Replays
from tests.simulation.wait_log import ABORTED, COMMITTED, OPEN, moment, stable_end, with_status
from wait_registry.errors import FencedError

FENCED = Failure(KafkaException(KafkaError(KafkaError._FENCED)))
NO_ANSWER = Failure(KafkaException(KafkaError(KafkaError._TIMED_OUT)))


class Process(NamedTuple):
    """A process so far, none at rest.

    ``current`` is the transactional ID of a producer that nothing has fenced yet. ``asked`` is a commit that is on its
    way, 0 for none, else 1 and the log's end by which it is judged; it outlives the process. ``end`` is that end for
    the next commit, if the world judges by one: where the log ended when the process listed it last, or could have
    since its snapshot or its last commit.
    """

    answers: Answers = ()
    current: str = ""
    asked: int = 0
    end: int = 0


class Transaction(NamedTuple):
    """Of a transactional ID: whether it is open, and whether its commit is decided without markers yet."""

    id: str
    is_open: bool = False
    is_decided: bool = False


class State(NamedTuple):
    """``log`` and ``sent`` are what transactions write: entries with a status, and what goes to other topics.

    ``sent`` has pairs of what it is and its status. ``position`` is how far the tables have come. What may still
    happen has no bound if it is negative.
    """

    log: tuple[Any, ...]
    sent: tuple[tuple[int, int], ...]
    position: int
    processes: tuple[Process, ...]
    transactions: tuple[Transaction, ...]
    faults: int
    restores: int
    appends: int = 0
    holds: int = 0


class TransactionWorld(ABC):
    """What processes ask of the coordinator, and what it does.

    A world has a method ``_x`` for each further effect ``x`` of its processes.
    """

    _replays: Replays

    def broken(self, state: State) -> str | None:
        return None  # what is broken is seen when a transaction is committed

    # ---- what a world decides

    @abstractmethod
    def _name(self, which: int) -> str:
        """Return how a story calls a process."""

    @abstractmethod
    def _written(self, state: State, status: int, sent: tuple[tuple[str, Any, int], ...]) -> State:
        """Return the state with what a process has written."""

    @abstractmethod
    def _problem(self, state: State, which: int, status: int) -> str | None:
        """Return which guarantee it breaks that a process commits what has this status."""

    def _confirmed(self, state: State, which: int) -> State:
        """Return the state when a process knows that it has committed."""
        return state

    # ---- the processes

    def _process(self, state: State, which: int, known_as: str, call: str, run: Callable[[], Any]) -> Iterator[Step]:
        """Yield what a process does next: a call by the name that tells it from others, if one does."""
        process, name = state.processes[which], self._name(which)

        def perform(state: State, effect: Effect, answers: Answers) -> Iterator[Outcome]:
            return getattr(self, f"_{effect[0]}")(state, which, answers, *effect[1:])  # type: ignore[no-any-return]

        for what, fault, after, answers, ended in self._replays.steps(
            known_as, (call,), run, process.answers, state, perform
        ):
            if isinstance(after, str):
                yield f"{name}: {what}", fault, after
            elif ended is not None:
                assert ended.error is None or isinstance(ended.error, FencedError), ended.error
                yield f"{name}: {what}, and ends", fault, at_rest(after, which)
            else:
                yield f"{name}: {what}", fault, put(after, which, answers=answers)
        if process.answers and state.faults:
            dead = at_rest(state, which)._replace(faults=fewer(state.faults))
            yield f"{name} dies, what it has asked for stays on its way", True, dead

    # ---- effects: what happened, whether it is a fault, the state after it, the answer

    def _fence(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        if all(each.id != id_ for each in state.transactions):
            state = state._replace(transactions=(*state.transactions, Transaction(id_)))
        number = number_of(state, id_)
        if not state.transactions[number].is_decided:  # else the coordinator answers when the markers are written
            yield "fences", False, put(aborted(state, number), which, current=id_), None

    def _write(self, state: State, which: int, _: Answers, id_: str, sent: tuple[Any, ...]) -> Iterator[Outcome]:
        if state.processes[which].current != id_:
            yield "is fenced", False, state, FENCED
            return
        number = number_of(state, id_)
        if not state.transactions[number].is_decided:  # else the coordinator makes it wait for the markers
            after = self._written(state, OPEN + number, sent)
            yield "writes", False, with_transaction(after, number, Transaction(id_, is_open=True)), None

    def _commit(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        process = state.processes[which]
        if process.current == id_:
            yield "asks to commit", False, put(state, which, asked=process.end + 1), None
        else:
            yield "is fenced", False, state, FENCED

    def _answer(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        process = state.processes[which]
        if not process.asked:
            if process.current == id_:
                yield "has committed", False, self._confirmed(state, which), None
            else:
                yield "is fenced", False, state, FENCED
        if state.faults:
            yield "gets no answer", True, state._replace(faults=fewer(state.faults)), NO_ANSWER

    # ---- the coordinator and the tables

    def _coordinator(self, state: State) -> Iterator[Step]:
        """Yield what the coordinator may do: time out, decide, write markers."""
        for number, transaction in enumerate(state.transactions):
            if transaction.is_decided:
                yield "the markers of the committed transaction are written", False, _closed(state, number, COMMITTED)
            elif transaction.is_open:
                yield "the coordinator aborts the transaction at its timeout", False, aborted(state, number)
                for which, process in enumerate(state.processes):
                    if process.asked and process.current == transaction.id:
                        decided = with_transaction(state, number, transaction._replace(is_decided=True))
                        after = self._problem(state, which, OPEN + number) or put(decided, which, asked=0)
                        yield f"the coordinator commits the transaction of {self._name(which)}", False, after

    def _sink(self, state: State) -> Iterator[Step]:
        """Yield how the tables may come to another position."""
        at = state.position
        if at < stable_end(state.log):
            yield f"the sink brings the tables from {at} to {at + 1}", False, state._replace(position=at + 1)
        if state.restores:
            for earlier in range(at):
                after = state._replace(position=earlier, restores=state.restores - 1)
                yield f"Postgres is restored to position {earlier}", True, after


def aborted(state: State, number: int) -> State:
    """Abort a transaction, if it is open, and raise the epoch: what its producers still ask for is refused."""
    transaction = state.transactions[number]
    if transaction.is_open:
        state = _closed(state, number, ABORTED)
    processes = [
        each._replace(current="", asked=0) if each.current == transaction.id else each for each in state.processes
    ]
    return state._replace(processes=tuple(processes))


def _closed(state: State, number: int, status: int) -> State:
    kept = [each for each in state.sent if each[1] != OPEN + number or status == COMMITTED]
    sent = sorted((what, status if at == OPEN + number else at) for what, at in kept)
    state = state._replace(log=with_status(state.log, OPEN + number, status), sent=tuple(sent))
    return with_transaction(state, number, Transaction(state.transactions[number].id))


def number_of(state: State, id_: str) -> int:
    """Return the number of a transactional ID."""
    return next(number for number, each in enumerate(state.transactions) if each.id == id_)


def put(state: State, which: int, **values: Any) -> State:
    """Return the state with other values of a process."""
    processes = list(state.processes)
    processes[which] = processes[which]._replace(**values)
    return state._replace(processes=tuple(processes))


def at_rest(state: State, which: int) -> State:
    """Throw away all that a process knows; what it has asked for stays on its way."""
    asked, current = state.processes[which].asked, state.processes[which].current
    return put(state, which, answers=(), end=0, current=current if asked else "")


def with_transaction(state: State, number: int, transaction: Transaction) -> State:
    """Return the state with another status of a transactional ID."""
    transactions = list(state.transactions)
    transactions[number] = transaction
    return state._replace(transactions=tuple(transactions))


def fewer(left: int) -> int:
    """Return one less of what may still happen; without a bound (negative) it stays so."""
    return left - 1 if left > 0 else left


def without_entry(state: State, at: int) -> State:
    """Return the state without an entry of the log; offsets behind it, also those in answers, are one less."""

    def moved(offset: int) -> int:
        return offset - 1 if offset > at else offset

    def answer(kind: str, seen: Any) -> Any:
        if kind == "snapshot":
            position, *rows = seen
            return Position(moved(position.next_offset), moment(0)), *(tuple(map(moved, each)) for each in rows)
        if kind == "tables":
            return moved(seen[0]), *seen[1:]
        if kind == "end":
            return moved(seen)
        if kind == "poll" and not isinstance(seen, Failure):
            return tuple((moved(offset), *rest) for offset, *rest in seen[0]), moved(seen[1])
        return seen

    processes = [
        each._replace(
            answers=tuple((kind, answer(kind, seen)) for kind, seen in each.answers),
            asked=moved(each.asked - 1) + 1 if each.asked else 0,
            end=moved(each.end),
        )
        for each in state.processes
    ]
    log, position = (*state.log[:at], *state.log[at + 1 :]), moved(state.position)
    return state._replace(log=log, position=position, processes=tuple(processes))
