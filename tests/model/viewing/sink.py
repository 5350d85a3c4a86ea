"""A sink: start at the position in Postgres, read a batch, write it and the position in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.explorer import State, Step
from tests.model.viewing.partition import ABORTED, ID, KIND, STATUS, THERE, WAIT, Rows, stable_end, too_old
from tests.model.viewing.partition import TIME as APPENDED
from tests.model.viewing.state import (
    BATCH,
    CHECKPOINT,
    CLOCK,
    END,
    EXPECTED,
    HALF_WRITTEN,
    LAST,
    LOG,
    NAMES,
    POSITION,
    POSTGRES,
    SINKS,
    TIME,
    TOMBSTONES,
    WAITS,
    changed,
    with_sink,
)

if TYPE_CHECKING:
    from tests.model.viewing.slice import Viewing


def sink_steps(model: Viewing, state: State, which: int, steps: list[Step]) -> None:
    """Add what a sink may do next, its death included."""
    sink = state[SINKS][which]
    if not sink:
        _start(model, state, which, steps)
        return
    if sink[BATCH]:
        _write(model, state, which, sink, steps)
    else:
        _read(model, state, which, sink, steps)
        _refresh(model, state, which, sink, steps)
    steps.append((f"{NAMES[which]} dies", True, changed(state, with_sink(state, which, ()))))


def _refused(model: Viewing, state: State, position: int, time: int) -> bool:
    return model.sink_checks_the_age and too_old(position, time, len(state[LOG]), state[CLOCK])


def _start(model: Viewing, state: State, which: int, steps: list[Step]) -> None:
    if not state[POSTGRES]:
        first = (0, state[CLOCK], model.no_rows())
        steps.append((f"{NAMES[which]} begins with the log", False, changed(state, (POSTGRES, first))))
        return
    position, time, _ = state[POSTGRES]
    if _refused(model, state, position, time):
        return
    begin = position if model.starts_at_progress else state[CHECKPOINT]
    after = changed(state, with_sink(state, which, (begin, time, position, ())))
    steps.append((f"{NAMES[which]} starts at {begin}", False, after))


def _refresh(model: Viewing, state: State, which: int, sink: tuple[Any, ...], steps: list[Step]) -> None:
    """Write down that the position is still the log's end."""
    position, _, rows = state[POSTGRES]
    if sink[POSITION] < len(state[LOG]) or (sink[TIME] == state[CLOCK] and position == sink[EXPECTED]):
        return
    if position != sink[EXPECTED] and model.compare_and_set:
        steps.append((f"{NAMES[which]} is fenced", False, changed(state, with_sink(state, which, ()))))
        return
    fresh = (sink[POSITION], state[CLOCK], sink[POSITION], ())
    after = changed(state, with_sink(state, which, fresh), (POSTGRES, (sink[POSITION], state[CLOCK], rows)))
    steps.append((f"{NAMES[which]} says that {position} is still the end", False, after))


def _read(model: Viewing, state: State, which: int, sink: tuple[Any, ...], steps: list[Step]) -> None:
    begin = sink[POSITION]
    for end in range(begin + 1, stable_end(state[LOG]) + 1):
        batch = _batch(model, state[LOG], begin, end)
        after = changed(state, with_sink(state, which, (*sink[:BATCH], batch)))
        steps.append((f"{NAMES[which]} reads from {begin} to {end}", False, after))


def _batch(model: Viewing, log: Any, begin: int, end: int) -> tuple[Any, ...]:
    last: dict[int, int] = {}
    tombstones = [-1] * model.ids
    waits_seen: set[int] = set()
    appended = -1
    for at in range(begin, end):
        entry = log[at]
        if not entry[THERE] or (entry[STATUS] == ABORTED and model.aborted_is_skipped):
            continue
        wait_id = entry[ID]
        last[wait_id], appended = at, entry[APPENDED]
        if entry[KIND] == WAIT:
            waits_seen.add(wait_id)
        elif model.all_tombstones_of_a_batch or wait_id not in waits_seen:
            tombstones[wait_id] = at
    waits = tuple(
        last[wait_id] if wait_id in last and log[last[wait_id]][KIND] == WAIT else -1 for wait_id in range(model.ids)
    )
    return (end, waits, tuple(tombstones), appended, 0)


def _write(model: Viewing, state: State, which: int, sink: tuple[Any, ...], steps: list[Step]) -> None:
    if _refused(model, state, sink[POSITION], sink[TIME]):
        steps.append((f"{NAMES[which]} finds its position too old", False, changed(state, with_sink(state, which, ()))))
        return
    position, time, rows = state[POSTGRES]
    batch, half = sink[BATCH], sink[BATCH][HALF_WRITTEN]
    moves = (model.written == "together") or (model.written == "position first") != bool(half)
    writes = (model.written == "together") or (model.written == "rows first") != bool(half)
    if moves and position != sink[EXPECTED] and model.compare_and_set:
        steps.append((f"{NAMES[which]} is fenced", False, changed(state, with_sink(state, which, ()))))
        return
    if writes:
        rows = _applied(model, rows, batch)
    if moves:
        position, time = batch[END], _time(model, state, sink)
    done = bool(half) or model.written == "together"
    left = (batch[END], _time(model, state, sink), batch[END], ()) if done else (*sink[:BATCH], (*batch[:4], 1))
    kept = batch[END] if done and not model.starts_at_progress else state[CHECKPOINT]
    after = changed(state, with_sink(state, which, left), (POSTGRES, (position, time, rows)), (CHECKPOINT, kept))
    what = " and ".join([*(["rows"] if writes else []), *([f"position {batch[END]}"] if moves else [])])
    steps.append((f"{NAMES[which]} writes {what}", False, after))


def _applied(model: Viewing, rows: Rows, batch: tuple[Any, ...]) -> Rows:
    """Return the rows after the deletes and then the upserts of a batch."""
    found = list(rows)
    for wait_id, row in enumerate(rows):
        tombstone, wait = batch[TOMBSTONES][wait_id], batch[WAITS][wait_id]
        if tombstone >= 0 and (row < tombstone or not model.delete_guard):
            found[wait_id] = -1
        if wait >= 0 and (found[wait_id] < wait or not model.upsert_guard):
            found[wait_id] = wait
    return tuple(found)


def _time(model: Viewing, state: State, sink: tuple[Any, ...]) -> int:
    """Return the time of the position after a batch."""
    batch = sink[BATCH]
    if batch[END] >= len(state[LOG]) or not model.time_is_that_of_the_next_record:
        return int(state[CLOCK])
    return int(max(sink[TIME], batch[LAST]))
