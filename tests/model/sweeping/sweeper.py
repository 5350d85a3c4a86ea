"""A sweep of the partition, step by step; a step that isn't taken for long makes a zombie of its sweeper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.model.explorer import State, Step
from tests.model.sweeping.coordinator import aborted
from tests.model.sweeping.partition import ABORTED, EXPORTED, OPEN, STANDS, WAIT, Row, due_rows, stable_end
from tests.model.sweeping.state import (
    ASKED,
    AT,
    CURRENT,
    DECIDED_TX,
    END,
    FAULTS,
    LETTERS,
    LOG,
    NAMES,
    NO_TX,
    OPEN_TX,
    POSITION,
    READ,
    ROWS,
    SWEEPERS,
    TX,
    UNSEEN,
    VIEWED,
    Sweeper,
    changed,
    fewer,
    named,
    with_sweeper,
    with_tx,
)

if TYPE_CHECKING:
    from tests.model.sweeping.slice import Sweeping

Action = Callable[["Sweeping", State, int, Sweeper, list[Step]], None]


def sweeper_steps(model: Sweeping, state: State, which: int, steps: list[Step]) -> None:
    """Add what a sweeper may do next, its death included."""
    sweeper = state[SWEEPERS][which]
    ACTIONS[model.order[sweeper[AT]]](model, state, which, sweeper, steps)
    if sweeper[AT] and state[FAULTS]:
        after = changed(_at_rest(state, which), (FAULTS, fewer(state[FAULTS])))
        steps.append((f"{NAMES[which]} dies, what it has asked for stays on its way", True, after))


def _at_rest(state: State, which: int) -> State:
    """Throw away all that a sweeper knows."""
    sweeper = state[SWEEPERS][which]
    return changed(state, with_sweeper(state, which, (0, *sweeper[CURRENT:VIEWED], *UNSEEN)))


def _next(state: State, which: int, at: int, *values: tuple[int, Any]) -> tuple[int, Any]:
    """Return the change that sends a sweeper to a step, with what it has learnt."""
    return with_sweeper(state, which, changed(state[SWEEPERS][which], (AT, at), *values))


def _fence(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    number = model.tx_of(which)
    if state[TX][number] == DECIDED_TX:
        return  # the coordinator answers when the markers are written
    after = aborted(model, state, number)
    after = changed(after, _next(after, which, sweeper[AT] + 1, (CURRENT, 1)))
    steps.append((f"{NAMES[which]} fences", False, after))


def _view(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    position = state[POSITION]
    rows = due_rows(state[LOG], position)
    _viewed(
        state,
        which,
        sweeper,
        f"looks at position {position} and its due rows",
        rows,
        ((VIEWED, position), (ROWS, rows)),
        steps,
    )


def _progress(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    position = state[POSITION]
    after = changed(state, _next(state, which, sweeper[AT] + 1, (VIEWED, position)))
    steps.append((f"{NAMES[which]} looks at position {position}", False, after))


def _rows(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    rows = due_rows(state[LOG], state[POSITION])
    _viewed(state, which, sweeper, "looks at the due rows", rows, ((ROWS, rows),), steps)


def _viewed(
    state: State,
    which: int,
    sweeper: Sweeper,
    what: str,
    rows: tuple[Row, ...],
    learnt: tuple[tuple[int, Any], ...],
    steps: list[Step],
) -> None:
    names = ", ".join(named(state[LOG], offset) for _, offset in rows)
    if rows:
        after = changed(state, _next(state, which, sweeper[AT] + 1, *learnt))
        steps.append((f"{NAMES[which]} {what}: {names}", False, after))
    elif sweeper[AT]:
        steps.append((f"{NAMES[which]} finds nothing due", False, _at_rest(state, which)))


def _end(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    end = len(state[LOG])
    after = changed(state, _next(state, which, sweeper[AT] + 1, (END, end)))
    steps.append((f"{NAMES[which]} asks for the log's end: {end}", False, after))


def _read(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    log, end = state[LOG], sweeper[END]
    stable = stable_end(log)
    if stable < end:
        if model.end_is_awaited:
            return
        end = stable
    if sweeper[READ] and not model.tail_is_read_on:
        end = sweeper[READ] - 1
    row, *others = sweeper[ROWS]
    if not model.tail_is_read or not _superseded(model, log, row, sweeper[VIEWED], end):
        after = changed(state, _next(state, which, sweeper[AT] + 1, (READ, 0 if model.tail_is_read_on else end + 1)))
        steps.append((f"{NAMES[which]} reads the tail to {end}: {named(log, row[1])} is open", False, after))
        return
    what = f"{NAMES[which]} reads the tail to {end}: {named(log, row[1])} is superseded"
    steps.append((what, False, _next_row(model, state, which, tuple(others))))


def _superseded(model: Sweeping, log: Any, row: Row, begin: int, end: int) -> bool:
    wait_id, offset = row
    for at in range(begin, end):
        kind, other, status, _ = log[at]
        counts = status == STANDS or (status == ABORTED and not model.aborted_is_skipped)
        if other == wait_id and at > offset and counts and (kind != WAIT or model.newer_wait_supersedes):
            return True
    return False


def _next_row(model: Sweeping, state: State, which: int, rows: tuple[Row, ...]) -> State:
    if not rows:
        return _at_rest(state, which)
    return changed(state, _next(state, which, model.order.index("end"), (ROWS, rows), (END, 0)))


def _letter(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    offset = sweeper[ROWS][0][1]
    letter = (LETTERS, tuple(sorted((*state[LETTERS], (offset, OPEN + model.tx_of(which))))))
    _write(model, state, which, sweeper, f"writes the dead letter of {named(state[LOG], offset)}", letter, steps)


def _tombstone(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    wait_id, log = sweeper[ROWS][0][0], state[LOG]
    if model.tombstone_to_its_partition:
        written = (*log, (EXPORTED, wait_id, OPEN + model.tx_of(which), 0))
        _write(model, state, which, sweeper, f"writes the tombstone {named(written, len(log))}", (LOG, written), steps)
    else:
        _write(model, state, which, sweeper, "writes the tombstone to another partition", (LOG, log), steps)


def _write(
    model: Sweeping, state: State, which: int, sweeper: Sweeper, what: str, change: tuple[int, Any], steps: list[Step]
) -> None:
    number = model.tx_of(which)
    if not sweeper[CURRENT]:
        steps.append((f"{NAMES[which]} finds itself fenced", False, _at_rest(state, which)))
    elif state[TX][number] != DECIDED_TX:  # else the coordinator has it wait for the markers
        after = changed(state, change, with_tx(state, number, OPEN_TX), _next(state, which, sweeper[AT] + 1))
        steps.append((f"{NAMES[which]} {what}", False, after))


def _commit(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    if not sweeper[CURRENT]:
        steps.append((f"{NAMES[which]} finds itself fenced", False, _at_rest(state, which)))
        return
    after = changed(state, _next(state, which, sweeper[AT] + 1, (ASKED, sweeper[END] + 1)))
    steps.append((f"{NAMES[which]} asks to commit", False, after))


def _answer(model: Sweeping, state: State, which: int, sweeper: Sweeper, steps: list[Step]) -> None:
    number = model.tx_of(which)
    if not sweeper[ASKED] and not sweeper[CURRENT]:
        steps.append((f"{NAMES[which]} finds itself fenced", False, _at_rest(state, which)))
    elif not sweeper[ASKED]:
        rows = sweeper[ROWS][1:]
        last = sweeper[AT] + 1 == len(model.order)
        after = _next_row(model, state, which, rows) if last else changed(state, _next(state, which, sweeper[AT] + 1))
        steps.append((f"{NAMES[which]} learns that it has committed", False, after))
    if not model.unknown_commit_ends_it and state[FAULTS] and state[TX][number] in (NO_TX, OPEN_TX):
        fenced = aborted(model, state, number)
        again = _next(fenced, which, model.order.index("letter"), (CURRENT, 1))
        after = changed(fenced, again, (FAULTS, fewer(state[FAULTS])))
        steps.append(
            (f"{NAMES[which]} gets no answer and starts again with another producer, all else as it was", True, after)
        )


ACTIONS: dict[str, Action] = {
    "fence": _fence,
    "view": _view,
    "progress": _progress,
    "rows": _rows,
    "end": _end,
    "read": _read,
    "letter": _letter,
    "tombstone": _tombstone,
    "commit": _commit,
    "answer": _answer,
}
