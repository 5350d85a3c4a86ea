"""The safeguards of the design, each with a model from which it is removed, and what must break then."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.model.explorer import NEVER_ENDS, Explored, Model
from tests.model.processing.slice import Processing
from tests.model.sweeping.slice import DESIGN, Sweeping
from tests.model.viewing.slice import Viewing


@dataclass(frozen=True, slots=True)
class Safeguard:
    """One of them.

    Args:
        name: for tests and tables.
        keeps: what it does.
        clause: of tests/guarantees.toml, which the product keeps by it.
        without: the smallest model that needs it, without it.
        breaks: how the story of the violation ends: a promise, or `NEVER_ENDS`; None where nothing breaks.
        since: why it stays although nothing breaks without it.
    """

    name: str
    keeps: str
    clause: str
    without: Model
    breaks: str | None
    since: str = ""


_ONE = Processing(records=1, failing=False)
_TWO = Processing(failing=False)
_CALM = Processing(failing=False, crashes=0)
PROCESSOR = (
    Safeguard(
        "commit-waits-for-acknowledgment",
        "Only acknowledged registrations may be committed.",
        "P2.2",
        replace(_ONE, commit_waits_for_acknowledgment=False),
        "P2",
    ),
    Safeguard(
        "commit-is-contiguous",
        "Only the contiguous prefix of them.",
        "P2.1",
        replace(_TWO, commit_is_contiguous=False),
        "P2",
    ),
    Safeguard(
        "unregistrable-waits-for-letter",
        "What can't be registered is passed when its dead letter is acknowledged.",
        "P1.2",
        replace(_ONE, oversized=(0,), refused_waits_for_letter=False),
        "P2",
    ),
    Safeguard(
        "warm-up",
        "After an assignment no handler starts before a commit that covers its record is confirmed.",
        "P1.1",
        replace(_ONE, deadly=(0,), crashes=0, revocations=0, warm_up=False),
        "P1",
    ),
    Safeguard(
        "tombstone-waits-for-letter",
        "The tombstone is sent when the dead letter is acknowledged.",
        "P1.3",
        replace(_ONE, failing=True, tombstone_waits_for_letter=False),
        "P1",
    ),
    Safeguard(
        "no-tombstone-on-revoke",
        "A tombstone means an outcome, never a rebalance.",
        "P1.6",
        replace(_ONE, no_tombstone_on_revoke=False),
        "P1",
    ),
    Safeguard(
        "revoke-flushes",
        "Wait records on their way arrive before the partition is given up.",
        "P1.4",
        replace(_CALM, records=1, revoke_flushes=False),
        NEVER_ENDS,
    ),
    Safeguard(
        "commit-stops-at-unstarted",
        "The last commit doesn't pass what is left to the next owner.",
        "P1.4",
        replace(_CALM, records=1, commit_stops_at_unstarted=False),
        NEVER_ENDS,
    ),
    Safeguard(
        "committed-is-kept",
        "What a commit has passed is still handled by who registered it.",
        "P1.4",
        replace(_CALM, records=1, committed_is_kept=False),
        NEVER_ENDS,
    ),
    Safeguard(
        "wait-id-is-computed",
        "The same record has the same wait id in every process.",
        "P1.7",
        replace(_ONE, wait_id_is_computed=False),
        "P3",
    ),
)

_SINKS = Viewing(ticks=0, rebuilds="never", restores=0)
_AGING = Viewing(sinks=1, transactions=False, rebuilds="never", restores=0)
SINK = (
    Safeguard(
        "all-tombstones-of-a-batch",
        "A tombstone is applied also where its wait came in the same batch.",
        "P3.13",
        replace(_SINKS, sinks=1, all_tombstones_of_a_batch=False),
        "P3",
    ),
    Safeguard(
        "position-with-its-rows",
        "Rows and position are one transaction, the position isn't first.",
        "P6.2",
        replace(_SINKS, sinks=1, written="position first"),
        "P1",
    ),
    Safeguard(
        "rows-with-their-position",
        "Nor are the rows: who finds the position moved has written nothing.",
        "P6.2",
        replace(_SINKS, written="rows first"),
        "P3",
    ),
    Safeguard(
        "compare-and-set",
        "A position moves only from where the sink has left it.",
        "P4.12",
        replace(_SINKS, compare_and_set=False),
        "P3",
    ),
    Safeguard(
        "starts-at-progress",
        "A sink starts at the position in Postgres, not at one of its own.",
        "P6.8",
        replace(_SINKS, sinks=1, restores=1, starts_at_progress=False),
        "P1",
    ),
    Safeguard(
        "sink-reads-committed",
        "Aborted tombstones are not applied.",
        "P1.10",
        replace(_SINKS, sinks=1, aborted_is_skipped=False),
        "P1",
    ),
    Safeguard(
        "sink-checks-the-age",
        "A sink doesn't read on from a position that compaction may have overtaken.",
        "P6.6",
        replace(_AGING, sink_checks_the_age=False),
        "P3",
    ),
    Safeguard(
        "sweeper-checks-the-age",
        "Nor does a sweeper trust it.",
        "P3.10",
        replace(_AGING, sweeper_checks_the_age=False),
        "P3",
    ),
    Safeguard(
        "age-is-that-of-the-next-record",
        "A position is as old as what follows it, not as its reading.",
        "P3.11",
        replace(_AGING, time_is_that_of_the_next_record=False),
        "P3",
    ),
    Safeguard(
        "age-is-checked-after-the-tail",
        "The sweeper judges the position's age when it has read the tail.",
        "P3.10",
        replace(_AGING, sweeps=True, age_is_checked_after_the_tail=False),
        "P3",
    ),
    Safeguard(
        "rebuild-checks-its-age",
        "A rebuild that took so long that compaction may have overtaken it changes nothing.",
        "P3.21",
        replace(_AGING, appends=2, rebuilds="any time", rebuild_checks_its_age=False),
        "P3",
    ),
    Safeguard(
        "rebuild-moves-the-position",
        "A rebuild replaces the position and its time with the rows.",
        "P3.21",
        replace(_AGING, appends=2, rebuilds="when refused", rebuild_moves_the_position=False),
        NEVER_ENDS,
    ),
    Safeguard(
        "upsert-guard",
        "A row is replaced by a later wait only.",
        "P6.4",
        replace(_SINKS, upsert_guard=False),
        None,
        "Compare-and-set lets no batch be applied to a view that has passed it.",
    ),
    Safeguard(
        "delete-guard",
        "A row is deleted by a later tombstone only.",
        "P6.4",
        replace(_SINKS, delete_guard=False),
        None,
        "As above; deletes come before upserts within a batch.",
    ),
    Safeguard(
        "rebuild-compares",
        "A rebuild replaces what it found when it began, or nothing.",
        "P3.21",
        replace(_SINKS, appends=2, rebuilds="any time", rebuild_compares=False),
        None,
        "Rows, position and time are replaced together, so the older view is exact too, and running sinks are fenced.",
    ),
)

_SWEEPS = Sweeping(appends=1, restores=0)
_FENCE, _VIEW, _END, _READ, _LETTER, _TOMBSTONE, _COMMIT, _ANSWER = DESIGN
_EXPORT = (_LETTER, _TOMBSTONE, _COMMIT, _ANSWER)
SWEEPER = (
    Safeguard(
        "tail-is-read",
        "The log is read from where the view ends.",
        "P3.1",
        replace(_SWEEPS, tail_is_read=False),
        "P3",
    ),
    Safeguard(
        "tail-is-read-on",
        "It is read on before each chunk.",
        "P3.2",
        replace(_SWEEPS, waits=(0, 1), sweepers=1, faults=0, tail_is_read_on=False),
        "P3",
    ),
    Safeguard(
        "newer-wait-supersedes",
        "A newer registration of the id counts by its own expiry.",
        "P3.3",
        replace(_SWEEPS, newer_wait_supersedes=False),
        "P3",
    ),
    Safeguard(
        "end-is-awaited",
        "What an open transaction may hold is awaited.",
        "P3.4",
        replace(_SWEEPS, end_is_awaited=False),
        "P3",
    ),
    Safeguard(
        "fence-before-tail",
        "The fence comes before the tail is read.",
        "P4.2",
        replace(_SWEEPS, appends=0, order=(_VIEW, _END, _READ, _FENCE, *_EXPORT)),
        "P4",
    ),
    Safeguard(
        "fence-before-end",
        "The fence comes before the log's end is asked for.",
        "P4.2",
        replace(_SWEEPS, appends=0, order=(_VIEW, _END, _FENCE, _READ, *_EXPORT)),
        "P4",
    ),
    Safeguard(
        "progress-before-rows",
        "The position is read before the rows.",
        "P3.9",
        replace(_SWEEPS, order=(_FENCE, "rows", "progress", _END, _READ, *_EXPORT)),
        "P3",
    ),
    Safeguard(
        "view-is-one-snapshot",
        "Both are read in one snapshot, whatever is restored between.",
        "P3.9",
        replace(_SWEEPS, restores=1, order=(_FENCE, "progress", "rows", _END, _READ, *_EXPORT)),
        "P3",
    ),
    Safeguard(
        "tombstone-with-its-letter",
        "Dead letter and tombstone are one transaction: the dead letter isn't first.",
        "P4.3",
        replace(_SWEEPS, appends=0, order=(_FENCE, _VIEW, _END, _READ, _LETTER, _COMMIT, _ANSWER, *_EXPORT[1:])),
        "P4",
    ),
    Safeguard(
        "letter-with-its-tombstone",
        "Nor is the tombstone.",
        "P4.3",
        replace(
            _SWEEPS,
            appends=0,
            order=(_FENCE, _VIEW, _END, _READ, _TOMBSTONE, _COMMIT, _ANSWER, _LETTER, _COMMIT, _ANSWER),
        ),
        NEVER_ENDS,
    ),
    Safeguard(
        "one-transactional-id",
        "All sweepers of a partition share one transactional id.",
        "P4.1",
        replace(_SWEEPS, appends=0, one_transactional_id=False),
        "P4",
    ),
    Safeguard(
        "unknown-commit-ends-the-sweep",
        "After a commit without an answer all that is known is thrown away.",
        "P4.4",
        replace(_SWEEPS, appends=0, faults=1, unknown_commit_ends_it=False),
        "P4",
    ),
    Safeguard(
        "own-tombstone-to-its-partition",
        "An export's tombstone goes to the partition of its registration.",
        "P4.5",
        replace(_SWEEPS, appends=0, tombstone_to_its_partition=False),
        "P4",
    ),
    Safeguard(
        "processors-tombstone-to-its-partition",
        "So does a processor's.",
        "P3.14",
        replace(_SWEEPS, processors_tombstone_to_its_partition=False),
        "P3",
    ),
    Safeguard(
        "key-stays-in-its-partition",
        "A record that is registered again lands where it did before, also when the wait topic has grown.",
        "P3.15",
        replace(_SWEEPS, key_stays_in_its_partition=False),
        "P3",
    ),
    Safeguard(
        "fence-before-view",
        "The fence comes before the view.",
        "P4.2",
        replace(_SWEEPS, restores=1, order=(_VIEW, _FENCE, _END, _READ, *_EXPORT)),
        None,
        "The tail is read after the fence, and from the view's position on: an export between view and fence is in it.",
    ),
    Safeguard(
        "tail-reads-committed",
        "Aborted tombstones don't count in the tail.",
        "P4.6",
        replace(_SWEEPS, sweepers=1, aborted_is_skipped=False),
        None,
        "An aborted tombstone would hold a row back, but only until the sink has passed it.",
    ),
)

SAFEGUARDS: tuple[Safeguard, ...] = (*PROCESSOR, *SINK, *SWEEPER)


def breaks_as_said(safeguard: Safeguard, explored: Explored) -> bool:
    """Return whether removing a safeguard did what its entry says."""
    if safeguard.breaks is None or explored.violation is None:
        return safeguard.breaks is None and explored.violation is None
    return explored.violation.broken.startswith(safeguard.breaks)
