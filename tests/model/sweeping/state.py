"""What a state of the sweepers' slice is made of."""

from __future__ import annotations

from typing import Any

from tests.model.explorer import State

# The fields of a state: the log; dead letters as (offset of the registration, status); the sink's position; the
# sweepers; a transaction for each transactional id; and what may still happen.
LOG, LETTERS, POSITION, SWEEPERS, TX, FAULTS, APPENDS, RESTORES = range(8)

NO_TX, OPEN_TX, DECIDED_TX = range(3)

# The fields of a sweeper: its next step; whether its producer is the last that was fenced in; its commit request on
# the way (the end of its tail + 1, else 0: what the coordinator needs to judge); the position of its view, -1 before;
# the due rows left; the log's end for this chunk; how far the first tail was read.
AT, CURRENT, ASKED, VIEWED, ROWS, END, READ = range(7)
Sweeper = tuple[Any, ...]
UNSEEN = (-1, (), 0, 0)
RESTING: Sweeper = (0, 0, 0, *UNSEEN)

NAMES = ("sweeper A", "sweeper B")
IDS = ("a", "b")


def changed(state: State, *changes: tuple[int, Any]) -> State:
    """Return a state with other values in some fields."""
    fields = list(state)
    for field, value in changes:
        fields[field] = value
    return tuple(fields)


def with_sweeper(state: State, which: int, sweeper: Sweeper) -> tuple[int, Any]:
    """Return the change that puts a sweeper in its place."""
    sweepers = list(state[SWEEPERS])
    sweepers[which] = sweeper
    return SWEEPERS, tuple(sweepers)


def with_tx(state: State, number: int, status: int) -> tuple[int, Any]:
    """Return the change that gives a transaction a status."""
    transactions = list(state[TX])
    transactions[number] = status
    return TX, tuple(transactions)


def named(log: Any, offset: int) -> str:
    """Return how a story calls an entry of the log."""
    return f"{IDS[log[offset][1]]}@{offset}"


def fewer(left: int) -> int:
    """Return one less of what may still happen; without a bound (negative) it stays so."""
    return left - 1 if left > 0 else left
