"""Random runs by seed, judged from outside: `python -m tests.chaos --help`."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chaos import redrive, report
from tests.chaos.report import BROKEN, KEPT, Entry, inconclusive, last_line, line_of
from tests.chaos.scenarios import NAMES, RATE_PER_S, RECORDS, play_scenario
from tests.chaos.workers import JOBS, Plan, play_all
from tests.support.programs import INTERRUPTED, at_least_one, positive, signals_interrupt

DESCRIPTION = """\
Plays seeds n, n+1, ... until the minutes are over, at least one: random faults on real services, a real broker and a
real Postgres, judged from outside. A random run takes one to four minutes. A line per run goes to standard output and
to tests/chaos/ledger/runs.csv; a run that breaks a guarantee prints its story and keeps its logs. docs/chaos.md
explains all. Exit codes: 0 every guarantee was kept, 1 one was broken or some seed has no run that could be judged,
2 usage, 130 interrupted."""
# The defaults of a soak, and of random runs.
SOAK_MINUTES, STORM_MINUTES, MINUTES = 60.0, 5.0, 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, play, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    meaningless = _meaningless(given)
    if meaningless:
        parser.error(meaningless)
    # Services run in folders of their own.
    folder = (given.logs or Path(tempfile.mkdtemp(prefix="waitreg-chaos-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    signals_interrupt()
    try:
        return _play_seeds(given, folder) if given.scenario is None else _play_scenario(given, folder)
    except KeyboardInterrupt:
        print(f"interrupted; logs: {folder}")
        return INTERRUPTED


def _play_seeds(given: argparse.Namespace, folder: Path) -> int:
    first = 1 if given.seed is None else given.seed
    plan = Plan(first, given.minutes or MINUTES, given.runs, given.jobs or JOBS, report.commit(), folder)
    entries: list[Entry] = []
    try:
        for run in play_all(plan):
            entry = run.entry._replace(commit=report.commit_at_end(plan.commit))
            entries.append(entry)
            report.append(entry, given.ledger or report.RUNS)
            print(line_of(entry), *([run.story] if run.story else []), sep="\n", flush=True)
    finally:
        print(last_line(entries))
    if given.logs is None and not any(file.is_dir() for file in folder.iterdir()):
        shutil.rmtree(folder)
    broken = any(entry.verdict == BROKEN for entry in entries)
    return 1 if broken or not entries or inconclusive(entries) else 0


def _play_scenario(given: argparse.Namespace, folder: Path) -> int:
    logging.getLogger().addHandler(logging.NullHandler())
    commit, kept = report.commit(), True
    wanted: dict[str, Any] = {
        "records": given.records or (redrive.RECORDS if given.scenario == "redrive" else RECORDS),
        "rate_per_s": given.rate or (redrive.RATE_PER_S if given.scenario == "redrive" else RATE_PER_S),
        "minutes": given.minutes or (STORM_MINUTES if given.scenario == "storm" else SOAK_MINUTES),
    }
    for entry in play_scenario(given.scenario, folder, commit, **wanted):
        report.append(entry._replace(commit=report.commit_at_end(commit)), given.ledger or report.SCENARIOS)
        kept &= entry.verdict == KEPT
    print("kept" if kept else f"NOT kept; logs: {folder}")
    if kept and given.logs is None:
        shutil.rmtree(folder)
    return 0 if kept else 1


def _meaningless(given: argparse.Namespace) -> str:
    """Return which options mean nothing here, since they would seem to be obeyed; empty if there are none."""
    takes = {None: ["seed", "minutes", "runs", "jobs"], "outage": ["records", "rate"]}
    takes |= {"soak": ["minutes"], "storm": ["minutes"], "redrive": ["records", "rate"]}
    own = takes[given.scenario]
    others = {name for names in takes.values() for name in names if getattr(given, name) is not None} - set(own)
    played = given.scenario or "random runs"
    return f"{', '.join(sorted(others))} mean nothing to {played}, which take {', '.join(own)}" if others else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=DESCRIPTION)
    parser.add_argument("--seed", type=int, metavar="n", help="the first one (default 1)")
    parser.add_argument(
        "--minutes",
        type=positive,
        help=f"how long (default {MINUTES:g}; a soak {SOAK_MINUTES:g}, a storm {STORM_MINUTES:g})",
    )
    parser.add_argument("--runs", type=at_least_one, help="exactly this number of runs, however long they take")
    parser.add_argument("--jobs", type=at_least_one, help=f"runs at the same time (default {JOBS})")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="where logs of bad runs are kept (a temporary folder)")
    parser.add_argument("--ledger", type=Path, metavar="CSV", help="instead of the one under tests/chaos/ledger")
    parser.add_argument(
        "--scenario", choices=NAMES, help="instead of random runs: an outage, a long steady load, a storm, a redrive"
    )
    parser.add_argument(
        "--records",
        type=at_least_one,
        help=f"per outage, of which there are 3 (default {RECORDS:,}), or redriven ({redrive.RECORDS:,})",
    )
    parser.add_argument(
        "--rate",
        type=positive,
        help=f"of an outage ({RATE_PER_S:g}) or a redrive ({redrive.RATE_PER_S:g}), records per second",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
