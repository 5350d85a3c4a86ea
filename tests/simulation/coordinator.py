"""The sweepers' state, the transaction coordinator, and the judge.

What a commit makes visible is what a guarantee can be broken by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sink.position import Position
from tests.simulation.exhaustive import Step
from tests.simulation.replay import Answers, Failure
from tests.simulation.wait_log import ABORTED, COMMITTED, ELSEWHERE, EXPORTED, OPEN, Log, moment, with_status

NAMES = ("sweeper A", "sweeper B")


class Sweeper(NamedTuple):
    """A sweep so far, none at rest.

    ``current`` is the transactional ID of a producer that nothing has fenced yet. ``asked`` is a commit that is on its
    way, 0 for none, else 1 and the log's end by which it is judged; it outlives the sweeper. ``end`` is that end for
    the next commit: where the log ended when the sweeper listed it last, or could have since its snapshot or its last
    commit.
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
    """``letters`` are dead letters: offset of the registration and status. ``faults`` without a bound are negative."""

    log: Log
    letters: tuple[tuple[int, int], ...]
    position: int
    sweepers: tuple[Sweeper, ...]
    transactions: tuple[Transaction, ...]
    faults: int
    appends: int
    restores: int


def coordinator_steps(state: State) -> Iterator[Step]:
    """Yield what the coordinator may do: time out, decide, write markers."""
    for number, transaction in enumerate(state.transactions):
        if transaction.is_decided:
            yield "the markers of the committed transaction are written", False, _closed(state, number, COMMITTED)
        elif transaction.is_open:
            yield "the coordinator aborts the transaction at its timeout", False, aborted(state, number)
            for which, sweeper in enumerate(state.sweepers):
                if sweeper.asked and sweeper.current == transaction.id:
                    what = f"the coordinator commits the transaction of {NAMES[which]}"
                    yield what, False, _committed(state, number, which)


def aborted(state: State, number: int) -> State:
    """Abort a transaction, if it is open, and raise the epoch: what its producers still ask for is refused."""
    transaction = state.transactions[number]
    if transaction.is_open:
        state = _closed(state, number, ABORTED)
    sweepers = [
        each._replace(current="", asked=0) if each.current == transaction.id else each for each in state.sweepers
    ]
    return state._replace(sweepers=tuple(sweepers))


def _closed(state: State, number: int, status: int) -> State:
    kept = [letter for letter in state.letters if letter[1] != OPEN + number or status == COMMITTED]
    letters = sorted((offset, status if at == OPEN + number else at) for offset, at in kept)
    state = state._replace(log=with_status(state.log, OPEN + number, status), letters=tuple(letters))
    return with_transaction(state, number, Transaction(state.transactions[number].id))


def _committed(state: State, number: int, which: int) -> State | str:
    for offset, status in state.letters:
        if status == OPEN + number and (problem := _judged(state, offset, state.sweepers[which].asked - 1)):
            return problem
    decided = state.transactions[number]._replace(is_decided=True)
    return put(with_transaction(state, number, decided), which, asked=0)


def _judged(state: State, offset: int, end: int) -> str | None:
    """Judge a dead letter that becomes visible: of which registration, and where the log ended for its chunk."""
    log = state.log
    for other, status in state.letters:
        if other == offset and (
            status == COMMITTED or (status >= OPEN and state.transactions[status - OPEN].is_decided)
        ):
            return f"P4: registration {named(log, offset)} is exported twice"
    wait_id = log[offset].wait_id
    others = any(log[other].wait_id == wait_id for other, status in state.letters if status == COMMITTED)
    for at in range(offset + 1, end):
        if log[at].kind == EXPORTED and not others:
            continue  # the letter's own tombstone, which came before it
        if log[at].wait_id == wait_id and log[at].status in (COMMITTED, ELSEWHERE):
            return f"P3: registration {named(log, offset)} is exported although {named(log, at)} followed it"
    return None


def named(log: Log, offset: int) -> str:
    """Return how a story calls an entry of the log."""
    return f"{'ab'[log[offset].wait_id]}@{offset}"


def number_of(state: State, id_: str) -> int:
    """Return the number of a transactional ID."""
    return next(number for number, each in enumerate(state.transactions) if each.id == id_)


def put(state: State, which: int, **values: Any) -> State:
    """Return the state with other values of a sweeper."""
    sweepers = list(state.sweepers)
    sweepers[which] = sweepers[which]._replace(**values)
    return state._replace(sweepers=tuple(sweepers))


def at_rest(state: State, which: int) -> State:
    """Throw away all that a sweeper knows; what it has asked for stays on its way."""
    asked, current = state.sweepers[which].asked, state.sweepers[which].current
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

    def answer(kind: str, told: Any) -> Any:
        if kind == "snapshot":
            position, *rows = told
            return Position(moved(position.next_offset), moment(0)), *(tuple(map(moved, each)) for each in rows)
        if kind == "end":
            return moved(told)
        if kind == "poll" and not isinstance(told, Failure):
            return tuple((moved(offset), *rest) for offset, *rest in told[0]), moved(told[1])
        return told

    sweepers = [
        each._replace(
            answers=tuple((kind, answer(kind, told)) for kind, told in each.answers),
            asked=moved(each.asked - 1) + 1 if each.asked else 0,
            end=moved(each.end),
        )
        for each in state.sweepers
    ]
    return state._replace(
        log=(*state.log[:at], *state.log[at + 1 :]),
        letters=tuple((moved(offset), status) for offset, status in state.letters),
        position=moved(state.position),
        sweepers=tuple(sweepers),
    )
