"""The smallest worlds that need a safeguard, by the names that the catalogue calls them by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from tests.safeguards.catalogue import Safeguard, all_safeguards
from tests.simulation import processor_worlds
from tests.simulation.exhaustive import NEVER_ENDS, Explored, Model
from tests.simulation.processor_worlds import DEADLY, FAILING, FAST, TOO_LARGE, switched
from tests.simulation.redrive_world import RedriveWorld
from tests.simulation.sink_world import SinkWorld
from tests.simulation.small_worlds import Small
from tests.simulation.sweeper_world import SweeperWorld
from tests.simulation.world import Committed, Nature

__all__ = ["DEADLY", "FAILING", "FAST", "TOO_LARGE", "Committed", "switched"]

MALFORMED = (Nature.MALFORMED,)


def _of_natures(world: Callable[..., Model]) -> Callable[..., Model]:
    """Return a world of the processor whose first arguments are what its records may be, one record each."""
    return lambda *natures, **bounds: world("", **({"natures": natures} if natures else {}), **bounds)


eager, deferred, off, after_eager = map(
    _of_natures,
    (processor_worlds.eager, processor_worlds.deferred, processor_worlds.off, processor_worlds.after_eager),
)
moved = partial(eager, late=True, moves=1, calm=True)
sinks = partial(SinkWorld, ticks=0, rebuilds="never", restores=0)
sink = partial(sinks, sinks=1)
aging = partial(SinkWorld, sinks=1, transactions=False, rebuilds="never", restores=0)
fenced_rebuild = partial(sinks, appends=2, rebuilds="any time")
rebuilds = partial(aging, appends=2)
sweeps = partial(SweeperWorld, appends=1, restores=0)
sees_aborted = partial(sweeps, sweepers=1, sees_aborted=True)
calm = partial(sweeps, appends=0)
redrives = partial(RedriveWorld, faults=0, restores=0)
resumed = partial(RedriveWorld, jobs=("job-1",), restores=0)


def in_worlds() -> list[Safeguard]:
    """Return the safeguards that are removed from a small world."""
    return [safeguard for safeguard in all_safeguards() if safeguard.world is not None]


def world_without(safeguard: Safeguard) -> Small:
    """Return the world from which a safeguard is removed."""
    assert safeguard.world is not None
    return partial(safeguard.world, sys.modules[__name__])


def safeguard_row(safeguard: Safeguard, found: Explored) -> str:
    """Return the line of a safeguard in docs/simulation.md: what breaks first without it, and after how many steps."""
    breaks = "nothing"
    if found.violation is not None:
        what = "never ends" if found.violation.broken == NEVER_ENDS else found.violation.broken[:2]
        breaks = f"{what}, {len(found.violation.story)} steps"
    return f"| `{safeguard.name}` | {safeguard.without} | {safeguard.clause} | {breaks} |"
