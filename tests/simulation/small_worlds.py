"""The small worlds of sink, sweeper and redrive in which every order of steps is tried."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pytest import MonkeyPatch

from tests.safeguards.catalogue import Safeguard
from tests.simulation.clients import install
from tests.simulation.exhaustive import Explored, Model, explore
from tests.simulation.redrive_world import RedriveWorld
from tests.simulation.replay import process_name
from tests.simulation.sink_world import SinkWorld
from tests.simulation.sweeper_world import SweeperWorld

Small = Callable[[], Model]

WORLDS: tuple[Small, ...] = (
    partial(SinkWorld, "sinks: 2, a restore", ticks=0, rebuilds="never"),
    partial(SinkWorld, "sinks: 2, a rebuild", appends=2, ticks=0, restores=0),
    partial(SinkWorld, "sinks: 2, 2 wait IDs", ids=2, ticks=0, restores=0, rebuilds="never"),
    partial(
        SinkWorld,
        "sink: compaction, a sweeper's look",
        sinks=1,
        transactions=False,
        restores=0,
        rebuilds="never",
        sweeps=True,
    ),
    partial(
        SinkWorld,
        "sink: compaction, a restore, rebuilds",
        appends=2,
        sinks=1,
        transactions=False,
        rebuilds="when refused",
    ),
    partial(SinkWorld, "sink: compaction, a rebuild at any time", appends=2, sinks=1, transactions=False, restores=0),
    partial(
        SinkWorld,
        "sink: compaction before its first start",
        sinks=1,
        transactions=False,
        restores=0,
        rebuilds="never",
        late_first_start=True,
    ),
    partial(SweeperWorld, "sweepers: 2, an append, a restore", appends=1),
    partial(SweeperWorld, "sweepers: 2, 2 appends", restores=0),
    partial(SweeperWorld, "sweepers: 2, 2 wait IDs", waits=(0, 1), appends=0, restores=0),
    partial(SweeperWorld, "sweeper: 2 wait IDs, an append", waits=(0, 1), sweepers=1, appends=1, restores=0),
    partial(RedriveWorld, "redrives: 2 jobs", faults=0, restores=0),
    partial(RedriveWorld, "redrives: a job resumed elsewhere, a fault", jobs=("job-1", "job-1"), restores=0),
    partial(RedriveWorld, "redrive: 2 dead letters, a fault, a restore", jobs=("job-1",), letters=2),
    partial(RedriveWorld, "redrive: 2 dead letters, a fault, a pause", jobs=("job-1",), letters=2, restores=0, holds=1),
)


def explored(world: Small, without: Safeguard | None = None, watch: Callable[[int], None] | None = None) -> Explored:
    """Explore a world with the product's code, or without one safeguard of it."""
    with MonkeyPatch.context() as patch:
        install(patch)
        if without is not None:
            without.remove(patch, process_name)
        return explore(world(), watch=watch)


def world_row(found: Explored) -> str:
    """Return the line of a world in docs/simulation.md."""
    return f"| {found.name} | {found.states:,} | {found.steps:,} | {found.depth} |"
