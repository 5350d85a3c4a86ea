"""The small worlds in which every order of steps is tried, and the safeguards of sink and sweeper with their worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pytest import MonkeyPatch

from tests.simulation import redrive_removals as redrive
from tests.simulation import sink_removals as sink
from tests.simulation import sweeper_removals as sweeper
from tests.simulation.clients import install
from tests.simulation.exhaustive import NEVER_ENDS, Explored, Model, explore
from tests.simulation.redrive_world import RedriveWorld
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


@dataclass(frozen=True, slots=True)
class Safeguard:
    """One rule of sink or sweeper.

    Args:
        remove: takes it out of the real code; it has the rule's name, and says what is done instead.
        clause: of tests/guarantees.toml, which the product keeps by the rule.
        world: the smallest one that needs it.
        breaks: the guarantee that is broken without it, or `NEVER_ENDS`; None where nothing breaks.
        since: why it stays although nothing breaks without it, or what of it is the world's and not the product's.
    """

    remove: Callable[[MonkeyPatch], None]
    clause: str
    world: Small
    breaks: str | None = "P3"
    since: str = ""

    @property
    def name(self) -> str:
        """Return its name, for tests and tables."""
        return self.remove.__name__.replace("_", "-")

    def breaks_as_said(self, found: Explored) -> bool:
        """Return whether removing it did what its entry says."""
        if self.breaks is None or found.violation is None:
            return self.breaks is None and found.violation is None
        return found.violation.broken.startswith(self.breaks)


def explored(
    world: Small,
    remove: Callable[[MonkeyPatch], None] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Explored:
    """Explore a world with the product's code, or without one rule of it."""
    with MonkeyPatch.context() as patch:
        install(patch)
        if remove is not None:
            remove(patch)
        return explore(world(), watch=watch)


def world_row(found: Explored) -> str:
    """Return the line of a world in docs/simulation.md."""
    return f"| {found.name} | {found.states:,} | {found.steps:,} | {found.depth} |"


def safeguard_row(safeguard: Safeguard, found: Explored) -> str:
    """Return the line of a safeguard in docs/simulation.md: what breaks first without it, and after how many steps."""
    without = (safeguard.remove.__doc__ or "").partition("\n")[0]
    breaks = "nothing"
    if found.violation is not None:
        what = "never ends" if found.violation.broken == NEVER_ENDS else found.violation.broken[:2]
        breaks = f"{what}, {len(found.violation.story)} steps"
    return f"| `{safeguard.name}` | {without} | {safeguard.clause} | {breaks} |"


_sinks = partial(SinkWorld, ticks=0, rebuilds="never", restores=0)
_one_sink = partial(_sinks, sinks=1)
_aging = partial(SinkWorld, sinks=1, transactions=False, rebuilds="never", restores=0)
SINK = (
    Safeguard(sink.all_tombstones_of_a_batch, "P3.13", _one_sink),
    Safeguard(sink.position_with_its_rows, "P6.2", _one_sink, "P1"),
    Safeguard(sink.rows_with_their_position, "P6.2", _sinks),
    Safeguard(sink.compare_and_set, "P4.12", _sinks, since="The comparison is SQL; the world looks for its text."),
    Safeguard(sink.starts_at_progress, "P6.8", partial(_one_sink, restores=1, mirrored=True), "P1"),
    Safeguard(sink.sink_reads_committed, "P1.10", _one_sink, "P1"),
    Safeguard(sink.sink_checks_the_age, "P6.6", _aging),
    Safeguard(sink.sweeper_checks_the_age, "P3.10", _aging),
    Safeguard(sink.age_is_that_of_the_next_record, "P3.11", _aging),
    Safeguard(sink.age_is_checked_after_the_tail, "P3.10", partial(_aging, sweeps=True)),
    Safeguard(sink.rebuild_checks_its_age, "P3.21", partial(_aging, appends=2, rebuilds="any time")),
    Safeguard(
        sink.rebuild_moves_the_position, "P3.21", partial(_aging, appends=2, rebuilds="when refused"), NEVER_ENDS
    ),
    Safeguard(
        sink.upsert_guard,
        "P6.4",
        _sinks,
        None,
        "Compare-and-set lets no batch be applied to tables that have passed it. The guard is SQL.",
    ),
    Safeguard(
        sink.delete_guard,
        "P6.4",
        _sinks,
        None,
        "As above; deletes come before upserts within a batch. The guard is SQL.",
    ),
    Safeguard(
        sink.rebuild_compares,
        "P3.21",
        partial(_sinks, appends=2, rebuilds="any time"),
        None,
        "Rows, position and time are replaced together: the older tables are exact too, and running sinks are fenced.",
    ),
)

_sweeps = partial(SweeperWorld, appends=1, restores=0)
_calm = partial(_sweeps, appends=0)
SWEEPER = (
    Safeguard(sweeper.tail_is_read, "P3.1", _sweeps),
    Safeguard(sweeper.tail_is_read_on, "P3.2", partial(_sweeps, waits=(0, 1), sweepers=1, faults=0)),
    Safeguard(sweeper.newer_wait_supersedes, "P3.3", _sweeps),
    Safeguard(sweeper.end_is_awaited, "P3.4", _sweeps),
    Safeguard(sweeper.fence_before_tail, "P4.2", _calm, "P4"),
    Safeguard(sweeper.fence_before_end, "P4.2", _calm, "P4"),
    Safeguard(sweeper.progress_before_rows, "P3.9", _sweeps),
    Safeguard(sweeper.view_is_one_snapshot, "P3.9", partial(_sweeps, restores=1)),
    Safeguard(sweeper.tombstone_with_its_letter, "P4.3", _calm, "P4"),
    Safeguard(sweeper.letter_with_its_tombstone, "P4.3", _calm, NEVER_ENDS),
    Safeguard(sweeper.one_transactional_id, "P4.1", partial(_calm, alike=False), "P4"),
    Safeguard(sweeper.unknown_commit_ends_the_sweep, "P4.4", partial(_calm, faults=1), "P4"),
    Safeguard(sweeper.own_tombstone_to_its_partition, "P4.5", _calm, "P4"),
    Safeguard(
        sweeper.processors_tombstone_to_its_partition,
        "P3.14",
        _sweeps,
        since="The processor is the world's; the mutant of the clause changes the real one.",
    ),
    Safeguard(
        sweeper.key_stays_in_its_partition,
        "P3.15",
        _sweeps,
        since="As above, with tests for the mutant; the partition is from the product's hash.",
    ),
    Safeguard(
        sweeper.fence_before_view,
        "P4.2",
        partial(_sweeps, restores=1),
        None,
        "The tail is read after the fence, and from the tables' position on: an export between is in it.",
    ),
    Safeguard(
        sweeper.tail_reads_committed,
        "P4.6",
        partial(_sweeps, sweepers=1, sees_aborted=True),
        None,
        "An aborted tombstone would hold a row back, but only until the sink has passed it.",
    ),
)

_redrives = partial(RedriveWorld, faults=0, restores=0)
_resumed = partial(RedriveWorld, jobs=("job-1",), restores=0)
REDRIVE = (
    Safeguard(redrive.marks_of_the_tail_count, "R1.1", _redrives, "R1"),
    Safeguard(redrive.one_id_per_group, "R1.2", _redrives, "R1"),
    Safeguard(redrive.fence_before_the_tail, "R1.2", _redrives, "R1"),
    Safeguard(redrive.record_with_its_mark, "R1.3", _resumed, "R1"),
    Safeguard(redrive.mark_with_its_record, "R1.3", _resumed, NEVER_ENDS),
    Safeguard(redrive.unknown_commit_begins_at_the_fence, "R1.8", _resumed, "R1"),
)
