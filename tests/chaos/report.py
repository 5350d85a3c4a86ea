"""The lists of all runs and of all scenarios, a line each, in tests/chaos/ledger; and the report of a run."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.chaos.history.history import FaultDone
from tests.chaos.run import Outcome
from tests.chaos.schedule import PlannedFault, Schedule

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "chaos" / "ledger" / "runs.csv"
SCENARIOS = RUNS.with_name("scenarios.csv")
KEPT, BROKEN, VOID = "kept", "broken", "void"
DIRTY = "-dirty"
STORIES = 3
_COLUMNS = {"lost": "lost", "false_export": "false"} | {rule: rule for rule in ("doubled", "changed", "abandoned")}
_SUMMED = (*_COLUMNS.values(), "other")


class Entry(NamedTuple):
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
    verdict: str = VOID


class ScenarioEntry(NamedTuple):
    """One scenario played: ``date`` is UTC, ``figures`` what was measured, in words."""

    scenario: str
    commit: str
    date: str
    seconds: int
    records: int
    figures: str
    verdict: str


def append(entry: Entry | ScenarioEntry, path: Path) -> None:
    """Add a line to a list, and the names of the columns before the first one; raises OSError."""
    rows = [entry] if path.exists() else [entry._fields, entry]
    # The line is written when the file is closed, in one piece: runs at the same time don't mix their lines.
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def commit() -> str:
    """Return what is run, as git describes it; "-dirty" when it isn't what is committed, new files included."""
    lists = [f":!{path.relative_to(ROOT)}" for path in (RUNS, SCENARIOS)]
    changed = _git("status", "--porcelain", "--untracked-files=normal", "--", ".", *lists)
    return f"{_git('describe', '--always') or 'unknown'}{DIRTY if changed else ''}"


def commit_at_end(at_beginning: str) -> str:
    """Return what a run was of, now that it has ended; "-dirty" when the tree has changed meanwhile."""
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
    verdict, counts = outcome.verdict, outcome.verdict.counts
    figures = {name: verdict.figures[name] for name in ("records", "done", "dead_lettered")}
    broken = {column: counts[rule] for rule, column in _COLUMNS.items()}
    others = counts.total() - sum(broken.values()) + len(outcome.endings) + bool(outcome.unsettled)
    return Entry(
        outcome.schedule.seed,
        commit,
        now(),
        round(outcome.seconds),
        faults=_names(outcome.faults),
        expired=verdict.figures["expired"] + verdict.figures["redelivered"],
        other=others,
        verdict=BROKEN if outcome.failed else VOID if outcome.void else KEPT,
        **figures,
        **broken,
    )


def entry_of_nothing(schedule: Schedule, commit: str, seconds: float, *, broken: bool = False) -> Entry:
    """Return the line of a run that could not be played to its end; ``broken`` if the product is the cause."""
    verdict, faults = BROKEN if broken else VOID, _names(schedule.faults)
    return Entry(schedule.seed, commit, now(), round(seconds), faults=faults, verdict=verdict, other=int(broken))


def _names(faults: Sequence[PlannedFault | FaultDone]) -> str:
    return "; ".join(f"{fault.name} {fault.target}" for fault in faults)


def line_of(entry: Entry) -> str:
    """Return a run in one line."""
    found = ", ".join(f"{name} {getattr(entry, name)}" for name in _SUMMED)
    return (
        f"seed {entry.seed:>5}: {entry.verdict:<6} {entry.seconds:>4} s, {entry.records} records: {entry.done} done, "
        f"{entry.dead_lettered} dead-lettered, {entry.expired} exported; {found}; {entry.faults}"
    )


def whole_story(outcome: Outcome) -> Iterator[str]:
    """Yield all that helps to understand a run: its schedule, what happened, what was broken, how to play it again."""
    yield from outcome.schedule.lines()
    for fault in outcome.faults:
        lasted_s = (fault.ended_ms - fault.began_ms) / 1000
        yield f"  {fault.name} of {fault.target}, {lasted_s:.1f} s: {fault.happened or 'DID NOT HAPPEN'}"
    if outcome.void:
        yield f"  void: {outcome.void}"
    if outcome.unsettled:
        yield f"  not settled in time: {outcome.unsettled}"
    yield from (f"  {ending}" for ending in outcome.endings)
    yield from (f"  {rule}: {count}" for rule, count in sorted(outcome.verdict.counts.items()))
    yield from outcome.verdict.stories(STORIES)
    yield f"  logs: {outcome.directory}"
    yield f"  again: make chaos SEED={outcome.schedule.seed} RUNS=1 JOBS=1"


def inconclusive(entries: Sequence[Entry]) -> list[int]:
    """Return the seeds that have no run to conclude anything from, in order."""
    conclusive = {entry.seed for entry in entries if entry.verdict != VOID}
    return sorted({entry.seed for entry in entries} - conclusive)


def last_line(entries: Sequence[Entry]) -> str:
    """Return the sum of all runs: what was broken, how much was exported, and which seeds show nothing."""
    judged = [entry for entry in entries if entry.verdict != VOID]
    exporting = [entry.expired for entry in judged if entry.expired]
    faults = sum(len(one.faults.split("; ")) if one.faults else 0 for one in judged)
    sums = ", ".join(f"{sum(getattr(one, name) for one in judged)} {name}" for name in _SUMMED)
    parts = [
        f"{len(judged)} runs, {faults} faults, {sum(one.records for one in judged)} records: {sums}",
        f"{len(exporting)} of the runs exported {sum(exporting)} records",
    ]
    if len(judged) < len(entries):
        parts.append(f"{len(entries) - len(judged)} void")
    if seeds := inconclusive(entries):
        parts.append(f"NO CONCLUSIVE RUN of seeds {', '.join(map(str, seeds))}")
    return "; ".join(parts)
