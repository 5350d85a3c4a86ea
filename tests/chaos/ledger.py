"""The lists of all runs and of all scenarios, a line each, in tests/chaos/ledger."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tests.chaos.checker.violation import Kind

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests" / "chaos" / "ledger" / "runs.csv"
SCENARIOS = ROOT / "tests" / "chaos" / "ledger" / "scenarios.csv"
KEPT, BROKEN, VOID = "kept", "broken", "void"
DIRTY = "-dirty"
_NAMED = {
    Kind.LOST: "lost",
    Kind.FALSE_EXPORT: "false",
    Kind.DOUBLED: "doubled",
    Kind.CHANGED: "changed",
    Kind.ABANDONED: "abandoned",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One run.

    ``date`` is UTC, ``faults`` their names with targets; ``dead_lettered`` is all dead letters, ``expired`` what the
    sweeper exported, to be delivered again or not; ``other`` counts what is broken and has no column of its own.
    ``abandoned`` is what was exported although its process had no fault, which breaks the run; ``registered_ms`` and
    ``exported_ms`` are the longest that a record waited for its registration, and one that was due for its export, with
    no fault near.
    """

    seed: int
    commit: str
    date: str
    seconds: int
    records: int
    faults: str
    done: int
    dead_lettered: int
    expired: int
    lost: int
    false: int
    doubled: int
    changed: int
    other: int
    abandoned: int
    registered_ms: int
    exported_ms: int
    verdict: str

    @property
    def fault_count(self) -> int:
        """How many faults were done."""
        return len(self.faults.split("; ")) if self.faults else 0


@dataclass(frozen=True, slots=True)
class ScenarioEntry:
    """One scenario played: ``date`` is UTC, ``figures`` what was measured, in words."""

    scenario: str
    commit: str
    date: str
    seconds: int
    records: int
    figures: str
    verdict: str


def append(entry: Entry | ScenarioEntry, path: Path = LEDGER) -> None:
    """Write a run down, with the names of the columns before the first one; raises OSError when that can't be done."""
    rows: list[Sequence[object]] = [astuple(entry)]
    if not path.exists():
        rows.insert(0, [field.name for field in fields(entry)])
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    # One write, at the end whoever else writes: runs beside each other don't mix their lines.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text.getvalue().encode())
    finally:
        os.close(descriptor)


def commit() -> str:
    """Return what is run, as git describes it; "-dirty" when it isn't what is committed, new files included."""
    described = _git("describe", "--always")
    lists = [f":!{path.relative_to(ROOT)}" for path in (LEDGER, SCENARIOS)]
    changed = _git("status", "--porcelain", "--untracked-files=normal", "--", ".", *lists)
    return f"{described or 'unknown'}{DIRTY if changed else ''}"


def commit_at_end(at_beginning: str) -> str:
    """Return what a run was of, now that it has ended; "-dirty" when the tree isn't any more what it was."""
    if at_beginning.endswith(DIRTY) or commit() == at_beginning:
        return at_beginning
    return at_beginning + DIRTY


def counted(counts: dict[Kind, int], endings: int) -> dict[str, int]:
    """Return the columns with what was broken."""
    columns = {column: counts.get(kind, 0) for kind, column in _NAMED.items()}
    return {**columns, "other": sum(counts.values()) - sum(columns.values()) + endings}


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
