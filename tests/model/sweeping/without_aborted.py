"""States that differ in aborted entries only are one: no step acts on them, so offsets may be counted without them."""

from __future__ import annotations

from tests.model.explorer import State
from tests.model.sweeping.partition import ABORTED
from tests.model.sweeping.state import (
    ASKED,
    END,
    LETTERS,
    LOG,
    POSITION,
    READ,
    ROWS,
    SWEEPERS,
    VIEWED,
    Sweeper,
    changed,
)


def without_aborted(state: State, seen: bool) -> State:
    """Return the state without aborted entries.

    Args:
        state: with or without such entries.
        seen: whether sweepers do act upon them; those stay that one might still read.
    """
    log = state[LOG]
    gone = [at for at, entry in enumerate(log) if entry[2] == ABORTED]
    if seen:
        positions = [sweeper[VIEWED] for sweeper in state[SWEEPERS] if sweeper[VIEWED] >= 0]
        first = min([state[POSITION], *positions])
        gone = [at for at in gone if at < first]
    for at in reversed(gone):
        state = changed(
            state,
            (LOG, (*state[LOG][:at], *state[LOG][at + 1 :])),
            (LETTERS, tuple([(_moved(offset, at), status) for offset, status in state[LETTERS]])),
            (POSITION, _moved(state[POSITION], at)),
            (SWEEPERS, tuple([_sweeper(sweeper, at) for sweeper in state[SWEEPERS]])),
        )
    return state


def _moved(offset: int, at: int) -> int:
    return offset - 1 if offset > at else offset


def _sweeper(sweeper: Sweeper, at: int) -> Sweeper:
    moved: Sweeper = changed(
        sweeper,
        # Both are an end and one more.
        (ASKED, _moved(sweeper[ASKED], at + 1)),
        (READ, _moved(sweeper[READ], at + 1)),
        (VIEWED, _moved(sweeper[VIEWED], at)),
        (END, _moved(sweeper[END], at)),
        (ROWS, tuple([(wait_id, _moved(offset, at)) for wait_id, offset in sweeper[ROWS]])),
    )
    return moved
