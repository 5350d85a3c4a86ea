"""What a state of the sink's slice is made of."""

from __future__ import annotations

from typing import Any

from tests.model.explorer import State

# The fields of a state. Postgres and its backup: (position, position time, rows). The checkpoint of Spark: a position.
# The rebuild: () or (position it replaces, end, time of its listing, offset it has come to, rows). The sweeper: () or
# what it has seen.
LOG, CLOCK, POSTGRES, BACKUP, CHECKPOINT, SINKS, REBUILD, SWEEPER, APPENDS, RESTORES = range(10)

# The fields of a sink that runs, () for one that doesn't: where it stands, as it remembers, and what it expects in
# Postgres; of its batch, () without: the end, the last wait and the last tombstone of each id, the last append time
# (-1 for none), and whether half of it is written (where a mutant writes it in two transactions).
POSITION, TIME, EXPECTED, BATCH = range(4)
END, WAITS, TOMBSTONES, LAST, HALF_WRITTEN = range(5)

NAMES = ("sink A", "sink B")


def changed(state: State, *changes: tuple[int, Any]) -> State:
    """Return a state, or a part of one, with other values in some fields."""
    fields = list(state)
    for field, value in changes:
        fields[field] = value
    return tuple(fields)


def with_sink(state: State, which: int, sink: tuple[Any, ...]) -> tuple[int, Any]:
    """Return the change that puts a sink in its place."""
    sinks = list(state[SINKS])
    sinks[which] = sink
    return SINKS, tuple(sinks)
