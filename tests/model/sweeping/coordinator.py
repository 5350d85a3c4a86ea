"""The transaction coordinator, and the judge: what a commit makes visible is what a promise can be broken by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.explorer import State, Step
from tests.model.sweeping.partition import ABORTED, ELSEWHERE, OPEN, STANDS, with_status
from tests.model.sweeping.state import (
    ASKED,
    CURRENT,
    DECIDED_TX,
    LETTERS,
    LOG,
    NAMES,
    NO_TX,
    OPEN_TX,
    SWEEPERS,
    TX,
    changed,
    named,
    with_sweeper,
    with_tx,
)

if TYPE_CHECKING:
    from tests.model.sweeping.slice import Sweeping


def coordinator_steps(model: Sweeping, state: State, steps: list[Step]) -> None:
    """Add what the coordinator may do: time out, decide, write markers."""
    for number, status in enumerate(state[TX]):
        if status == OPEN_TX:
            steps.append(
                ("the coordinator aborts the open transaction at its timeout", False, aborted(model, state, number))
            )
        elif status == DECIDED_TX:
            steps.append(
                ("the markers of the committed transaction are written", False, _closed(state, number, STANDS))
            )
    for which, sweeper in enumerate(state[SWEEPERS]):
        if sweeper[ASKED] and state[TX][model.tx_of(which)] == OPEN_TX:
            steps.append(
                (f"the coordinator commits the transaction of {NAMES[which]}", False, _committed(model, state, which))
            )


def aborted(model: Sweeping, state: State, number: int) -> State:
    """Abort a transaction, if it is open, and raise the epoch: what its producers still ask for is refused."""
    if state[TX][number] == OPEN_TX:
        state = _closed(state, number, ABORTED)
    sweepers = tuple(
        (sweeper[0], 0, 0, *sweeper[ASKED + 1 :]) if model.tx_of(which) == number else sweeper
        for which, sweeper in enumerate(state[SWEEPERS])
    )
    return changed(state, (SWEEPERS, sweepers))


def _closed(state: State, number: int, status: int) -> State:
    letters = [letter for letter in state[LETTERS] if letter[1] != OPEN + number or status == STANDS]
    shown = tuple(sorted((offset, status if at == OPEN + number else at) for offset, at in letters))
    log = with_status(state[LOG], OPEN + number, status)
    return changed(state, (LOG, log), (LETTERS, shown), with_tx(state, number, NO_TX))


def _committed(model: Sweeping, state: State, which: int) -> State | str:
    number, sweeper = model.tx_of(which), state[SWEEPERS][which]
    for offset, status in state[LETTERS]:
        if status == OPEN + number:
            problem = _judged(state, offset, sweeper[ASKED] - 1)
            if problem is not None:
                return problem
    asked: tuple[Any, ...] = (sweeper[0], sweeper[CURRENT], 0, *sweeper[ASKED + 1 :])
    return changed(state, with_tx(state, number, DECIDED_TX), with_sweeper(state, which, asked))


def _judged(state: State, offset: int, end: int) -> str | None:
    """Judge a dead letter that becomes visible: of which registration, and where the log ended for its chunk."""
    log, transactions = state[LOG], state[TX]
    for other, status in state[LETTERS]:
        if other == offset and (status == STANDS or (status >= OPEN and transactions[status - OPEN] == DECIDED_TX)):
            return f"P4: registration {named(log, offset)} is exported twice"
    for at in range(offset + 1, end):
        _, wait_id, status, _ = log[at]
        if wait_id == log[offset][1] and status in (STANDS, ELSEWHERE):
            return f"P3: registration {named(log, offset)} is exported although {named(log, at)} followed it"
    return None
