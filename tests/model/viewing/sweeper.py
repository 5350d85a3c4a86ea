"""A sweeper's look under compaction: the view, the tail, then the age of the view's position; delays between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.explorer import State, Step
from tests.model.viewing.partition import read_on, stable_end, too_old, truth
from tests.model.viewing.state import CLOCK, LOG, POSTGRES, SWEEPER, changed

if TYPE_CHECKING:
    from tests.model.viewing.slice import Viewing


def sweeper_steps(model: Viewing, state: State, steps: list[Step]) -> None:
    """Add the sweeper's next step."""
    log, seen = state[LOG], state[SWEEPER]
    if not seen:
        position, time, rows = state[POSTGRES]
        early = not model.age_is_checked_after_the_tail and too_old(position, time, len(log), state[CLOCK])
        if any(row >= 0 for row in rows) and not early:
            after = changed(state, (SWEEPER, (position, time, rows)))
            steps.append((f"the sweeper looks at position {position} and rows {rows}", False, after))
        return
    if len(seen) == 3 and stable_end(log) == len(log):
        position, time, rows = seen
        # Only rows of the view are exported; an entry that follows takes a row away.
        left = tuple(
            row if now == row else -1 for row, now in zip(rows, read_on(rows, log, position, len(log)), strict=True)
        )
        wrong = any(row >= 0 and row != real for row, real in zip(left, truth(log, model.ids), strict=True))
        after = changed(state, (SWEEPER, (position, time, len(log), wrong)))
        steps.append((f"the sweeper reads the tail to {len(log)}, open is {left}", False, after))
    elif len(seen) == 4:
        position, time, end, wrong = seen
        if wrong and not (model.age_is_checked_after_the_tail and too_old(position, time, end, state[CLOCK])):
            steps.append(("the sweeper exports", False, "P3: a registration is exported although an entry followed it"))
        steps.append(("the sweeper is done", False, changed(state, (SWEEPER, ()))))
