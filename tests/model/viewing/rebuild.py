"""The rebuild: reads the log from its beginning, piece by piece, then replaces rows, position and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.explorer import State, Step
from tests.model.viewing.partition import read_on, stable_end, too_old
from tests.model.viewing.state import CLOCK, LOG, POSTGRES, REBUILD, changed

if TYPE_CHECKING:
    from tests.model.viewing.slice import Viewing


def rebuild_steps(model: Viewing, state: State, steps: list[Step]) -> None:
    """Add what a rebuild may do next, its death included."""
    position, time, _ = state[POSTGRES]
    if not state[REBUILD]:
        if model.rebuilds == "when refused" and not too_old(position, time, len(state[LOG]), state[CLOCK]):
            return
        end = stable_end(state[LOG])
        after = changed(state, (REBUILD, (position, end, state[CLOCK], 0, model.no_rows())))
        steps.append((f"a rebuild begins, the log ends at {end}", False, after))
        return
    expected, end, listed, at, rows = state[REBUILD]
    if at < end:
        read = read_on(rows, state[LOG], at, at + 1)
        after = changed(state, (REBUILD, (expected, end, listed, at + 1, read)))
        steps.append((f"the rebuild reads offset {at}", False, after))
    else:
        _replace(model, state, steps)
    steps.append(("the rebuild dies", True, changed(state, (REBUILD, ()))))


def _replace(model: Viewing, state: State, steps: list[Step]) -> None:
    position, time, _ = state[POSTGRES]
    expected, end, listed, _, rows = state[REBUILD]
    gone = changed(state, (REBUILD, ()))
    if model.rebuild_checks_its_age and too_old(0, listed, end, state[CLOCK]):
        steps.append(("the rebuild has taken too long and gives up", False, gone))
    elif position != expected and model.rebuild_compares:
        steps.append(("the rebuild is fenced", False, gone))
    else:
        place = (end, listed) if model.rebuild_moves_the_position else (position, time)
        what = f"the rebuild replaces rows and position by those of {end}"
        steps.append((what, False, changed(gone, (POSTGRES, (*place, rows)))))
