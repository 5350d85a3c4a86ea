"""What a run's ends of processes count for, and how runs are written down and summed up."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.chaos import ledger
from tests.chaos.checker.violation import Kind
from tests.chaos.endings import AFTERMATH_MS, unexpected
from tests.chaos.history.history import FaultDone
from tests.chaos.ledger import BROKEN, KEPT, VOID, Entry
from tests.chaos.report import last_line
from tests.chaos.service import Cause, Exit

FAULT = FaultDone("kill", "sink-1", 1_000_000, 1_005_000, "pid 1 is gone")
DURING, LONG_AFTER = 1_002_000, FAULT.ended_ms + AFTERMATH_MS + 1


@pytest.mark.parametrize(
    ("status", "cause", "at_ms", "fine"),
    [
        (0, Cause.ASKED, LONG_AFTER, True),
        (1, Cause.ASKED, DURING, False),
        (137, Cause.ASKED, DURING, False),
        (143, Cause.ASKED, DURING, False),
        (143, Cause.ASKED_EARLY, DURING, True),
        (0, Cause.ASKED_EARLY, DURING, True),
        (1, Cause.ASKED_EARLY, DURING, False),
        (137, Cause.KILLED, DURING, True),
        (1, Cause.ITSELF, DURING, True),
        (3, Cause.ITSELF, FAULT.ended_ms + AFTERMATH_MS, True),
        (1, Cause.ITSELF, LONG_AFTER, False),
        (0, Cause.ITSELF, DURING, False),
        (2, Cause.ITSELF, DURING, False),
        (4, Cause.ITSELF, DURING, False),
        (139, Cause.ITSELF, DURING, False),
    ],
)
def test_a_process_ends_when_asked_or_by_a_fault_and_never_otherwise(
    status: int, cause: Cause, at_ms: int, fine: bool
) -> None:
    assert (unexpected(Exit(at_ms, "sink-1", status, cause), [FAULT]) == "") is fine


def entry(verdict: str = KEPT, **figures: int) -> Entry:
    """Return a run of two faults."""
    numbers = dict.fromkeys(("done", "dead_lettered", "expired", "lost", "false", "doubled", "changed", "other"), 0)
    return Entry(
        seed=7,
        commit="abc",
        date="2000-01-01T00:00:00Z",
        seconds=40,
        records=100,
        faults="kill sink-1; storm group",
        verdict=verdict,
        **{**numbers, **figures},
    )


def test_runs_are_appended_under_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    for verdict in (KEPT, BROKEN):
        ledger.append(entry(verdict, lost=1), path)
    first, second = csv.DictReader(path.read_text().splitlines())
    assert (first["seed"], first["verdict"], first["lost"], first["faults"]) == (
        "7",
        KEPT,
        "1",
        "kill sink-1; storm group",
    )
    assert second["verdict"] == BROKEN


def test_every_broken_promise_has_its_column() -> None:
    counts = {kind: number for number, kind in enumerate(Kind, start=1)}
    columns = ledger.counted(counts, endings=100)
    assert (columns["lost"], columns["false"]) == (counts[Kind.LOST], counts[Kind.FALSE_EXPORT])
    assert sum(columns.values()) == sum(counts.values()) + 100, "none is left out"


def test_what_is_void_is_not_counted_among_the_runs() -> None:
    told = last_line([entry(lost=2), entry(BROKEN, doubled=1), entry(VOID, lost=50)])
    assert told == "2 runs, 4 faults, 200 records: 2 lost, 0 false, 1 doubled, 0 changed, 0 other (1 void)"
