"""The lists of all runs and of all scenarios, a line each, in tests/chaos/ledger; and what is told of a run."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.checker.violation import Kind
from tests.chaos.run import Outcome
from tests.chaos.schedule import Schedule

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "chaos" / "ledger" / "runs.csv"
SCENARIOS = RUNS.with_name("scenarios.csv")
KEPT, BROKEN, VOID = "kept", "broken", "void"
DIRTY = "-dirty"
STORIES = 3
_NAMED = {
    Kind.LOST: "lost",
    Kind.FALSE_EXPORT: "false",
    Kind.DOUBLED: "doubled",
    Kind.CHANGED: "changed",
    Kind.ABANDONED: "abandoned",
}
_SUMMED = ("lost", "false", "doubled", "changed", "abandoned", "other")


@dataclass(frozen=True, slots=True)
class Entry:
    """One run; docs/chaos.md says what its columns are."""

    seed: int
    commit: str
    date: str
    seconds: int
    records: int = 0
    faults: str = ""
    done: int = 0
    dead_lettered: int = 0
    expired: int = 0
    lost: int = 0
    false: int = 0
    doubled: int = 0
    changed: int = 0
    other: int = 0
    abandoned: int = 0
    registered_ms: int = 0
    exported_ms: int = 0
    verdict: str = VOID

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


def append(entry: Entry | ScenarioEntry, path: Path) -> None:
    """Write a run down, with the names of the columns before the first one; raises OSError when that can't be done."""
    rows: list[Sequence[object]] = [astuple(entry)]
    if not path.exists():
        rows.insert(0, [field.name for field in fields(entry)])
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    # One write, at the end whoever else writes: runs at the same time don't mix their lines.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text.getvalue().encode())
    finally:
        os.close(descriptor)


def commit() -> str:
    """Return what is run, as git describes it; "-dirty" when it isn't what is committed, new files included."""
    lists = [f":!{path.relative_to(ROOT)}" for path in (RUNS, SCENARIOS)]
    changed = _git("status", "--porcelain", "--untracked-files=normal", "--", ".", *lists)
    return f"{_git('describe', '--always') or 'unknown'}{DIRTY if changed else ''}"


def commit_at_end(at_beginning: str) -> str:
    """Return what a run was of, now that it has ended; "-dirty" when the tree isn't any more what it was."""
    if at_beginning.endswith(DIRTY) or commit() == at_beginning:
        return at_beginning
    return at_beginning + DIRTY


def now() -> str:
    """Return the time, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def entry_of(outcome: Outcome, commit: str) -> Entry:
    """Return a run's line."""
    figures = outcome.verdict.figures
    return Entry(
        outcome.schedule.seed,
        commit,
        now(),
        round(outcome.seconds),
        faults="; ".join(f"{fault.name} {fault.target}" for fault in outcome.faults),
        **{name: figures.get(name, 0) for name in ("records", "done", "dead_lettered")},
        expired=figures.get("expired", 0) + figures.get("redelivered", 0),
        registered_ms=figures.get("slowest_registration_ms", 0),
        exported_ms=figures.get("slowest_export_ms", 0),
        verdict=BROKEN if outcome.failed else VOID if outcome.void else KEPT,
        **counted(outcome.verdict.counts, len(outcome.endings) + bool(outcome.unsettled)),
    )


def entry_of_nothing(schedule: Schedule, commit: str, seconds: float, *, broken: bool = False) -> Entry:
    """Return the line of a run that could not be played to its end; ``broken``: by the product's own doing."""
    faults = "; ".join(f"{fault.name} {fault.target}" for fault in schedule.faults)
    verdict = BROKEN if broken else VOID
    return Entry(schedule.seed, commit, now(), round(seconds), faults=faults, verdict=verdict, other=int(broken))


def counted(counts: Mapping[Kind, int], endings: int) -> dict[str, int]:
    """Return the columns with what was broken."""
    columns = {column: counts.get(kind, 0) for kind, column in _NAMED.items()}
    return {**columns, "other": sum(counts.values()) - sum(columns.values()) + endings}


def line_of(entry: Entry) -> str:
    """Tell a run in a line."""
    found = ", ".join(f"{name} {getattr(entry, name)}" for name in _SUMMED)
    return (
        f"seed {entry.seed:>5}: {entry.verdict:<6} {entry.seconds:>4} s, {entry.records} records: {entry.done} done, "
        f"{entry.dead_lettered} dead-lettered, {entry.expired} exported; {found}; registered in "
        f"{entry.registered_ms} ms, exported in {entry.exported_ms} ms; {entry.faults}"
    )


def whole_story(outcome: Outcome) -> Iterator[str]:
    """Tell everything about a run that is worth a look: its schedule, what happened, what was broken, the way back."""
    yield from outcome.schedule.lines()
    for fault in outcome.faults:
        lasted_s = (fault.ended_ms - fault.began_ms) / 1000
        yield f"  {fault.name} of {fault.target}, {lasted_s:.1f} s: {fault.happened or 'DID NOT HAPPEN'}"
    if outcome.void:
        yield f"  void: {outcome.void}"
    if outcome.unsettled:
        yield f"  when the time was over: {outcome.unsettled}"
    yield f"  {outcome.restarts} processes ended by themselves and were started again"
    yield from (f"  {ending}" for ending in outcome.endings)
    yield from (f"  {kind}: {count}" for kind, count in sorted(outcome.verdict.counts.items()) if count)
    yield from outcome.verdict.stories(STORIES)
    yield f"  logs: {outcome.directory}"
    yield f"  again: make chaos SEED={outcome.schedule.seed} RUNS=1 JOBS=1"


def inconclusive(entries: Sequence[Entry]) -> list[int]:
    """Return the seeds that have no run to conclude anything from, in order."""
    conclusive = {entry.seed for entry in entries if entry.verdict != VOID}
    return sorted({entry.seed for entry in entries} - conclusive)


def last_line(entries: Sequence[Entry]) -> str:
    """Sum up all runs: what was broken, how much was exported, and which seeds show nothing."""
    judged = [entry for entry in entries if entry.verdict != VOID]
    exporting = [entry for entry in judged if entry.expired]
    told = [
        f"{len(judged)} runs, {sum(one.fault_count for one in judged)} faults, {sum(one.records for one in judged)} "
        f"records: {', '.join(f'{sum(getattr(one, name) for one in judged)} {name}' for name in _SUMMED)}",
        f"{len(exporting)} of the runs exported {sum(one.expired for one in exporting)} records",
    ]
    if len(judged) < len(entries):
        told.append(f"{len(entries) - len(judged)} void")
    if seeds := inconclusive(entries):
        told.append(f"NO CONCLUSIVE RUN of seeds {', '.join(map(str, seeds))}")
    return "; ".join(told)
