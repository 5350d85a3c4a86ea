"""The rebuild: reads the log from its beginning, then replaces rows, position and its time by compare-and-set."""

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
        rows = read_on(model.no_rows(), state[LOG], 0, end)
        after = changed(state, (REBUILD, (position, end, state[CLOCK], rows)))
        steps.append((f"a rebuild reads the log up to {end}", False, after))
        return
    expected, end, listed, rows = state[REBUILD]
    if position == expected or not model.rebuild_compares:
        place = (end, listed) if model.rebuild_moves_the_position else (position, time)
        after = changed(state, (REBUILD, ()), (POSTGRES, (*place, rows)))
        steps.append((f"the rebuild replaces rows and position by those of {end}", False, after))
    steps.append(("the rebuild dies, or is fenced", False, changed(state, (REBUILD, ()))))
