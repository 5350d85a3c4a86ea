"""Random runs by seed, judged from outside: `python -m tests.chaos --help`."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.chaos import redrive
from tests.chaos.scenarios import LEAST_SOAK_MINUTES, RATE_PER_S, RECORDS, play_scenario
from tests.chaos.seeds import JOBS, KEPT, Run, play_seeds, summary
from tests.support.fresh_seed import first_seed
from tests.support.programs import INTERRUPTED, at_least_one, positive, signals_interrupt

DESCRIPTION = """\
Plays random faults on real services, a real broker and a real Postgres, judged from outside: seeds n, n+1, ... until
the minutes are over, one at least. A random run takes one to four minutes and prints a line; one that breaks a
guarantee prints its story and keeps its logs. docs/chaos.md explains all. Exit codes: 0 every guarantee was kept, 1 one
was broken or some seed has no run that could be judged, 2 usage, 130 interrupted."""
# What each scenario takes, and what it gets without; None are random runs.
TAKES: Mapping[str | None, Mapping[str, Any]] = {
    None: {"seed": None, "minutes": 1.0, "runs": None, "jobs": JOBS},
    "outage": {"records": RECORDS, "rate": RATE_PER_S},
    "soak": {"minutes": 60.0},
    "storm": {"minutes": 5.0},
    "redrive": {"records": redrive.RECORDS, "rate": redrive.RATE_PER_S},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, play, and return the exit code."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    scenario, logs = given.pop("scenario"), given.pop("logs")
    takes = TAKES[scenario]
    # An option without a meaning would seem to be obeyed.
    if meaningless := [name for name, value in given.items() if value is not None and name not in takes]:
        parser.error(f"{', '.join(meaningless)} mean nothing to {scenario or 'random runs'}, which take {list(takes)}")
    wanted = {name: usual if given[name] is None else given[name] for name, usual in takes.items()}
    if scenario == "soak" and wanted["minutes"] < LEAST_SOAK_MINUTES:
        least = f"expected {LEAST_SOAK_MINUTES:g} or more, since less says nothing about growth"
        parser.error(f"saw a soak of {wanted['minutes']:g} minutes, {least}")
    # Services run in folders of their own.
    folder = (logs or Path(tempfile.mkdtemp(prefix="waitreg-chaos-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    signals_interrupt()
    try:
        with _quiet_clients(folder):
            kept = _play_seeds(folder, **wanted) if scenario is None else play_scenario(scenario, folder, **wanted)
    except KeyboardInterrupt:
        print(f"interrupted; logs: {folder}")
        return INTERRUPTED
    if kept and logs is None:
        shutil.rmtree(folder)
    print("kept" if kept else f"NOT kept; logs: {folder}")
    return 0 if kept else 1


def _play_seeds(folder: Path, seed: int | None, minutes: float, runs: int | None, jobs: int) -> bool:
    played: list[Run] = []
    first = first_seed() if seed is None else seed
    print(f"seeds from {first} (again: --seed {first})", flush=True)
    try:
        played.extend(play_seeds(first, minutes, runs, jobs, folder))
    finally:
        print(summary(played))
    return bool(played) and all(run.verdict == KEPT for run in played)


@contextmanager
def _quiet_clients(folder: Path) -> Iterator[None]:
    """Have the client libraries log every server that a fault stops in a file: it would hide our own lines."""
    logging.getLogger().addHandler(logging.NullHandler())
    shown = os.dup(sys.stderr.fileno())
    with (folder / "clients.log").open("ab") as clients:
        os.dup2(clients.fileno(), sys.stderr.fileno())
    try:
        yield
    finally:
        os.dup2(shown, sys.stderr.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=DESCRIPTION)
    parser.add_argument("--seed", type=int, metavar="n", help="the first one (default: one of the commit's own)")
    lengths = f"default 1; a soak 60, {LEAST_SOAK_MINUTES:g} at least; a storm 5"
    parser.add_argument("--minutes", type=positive, help=f"how long ({lengths})")
    parser.add_argument("--runs", type=at_least_one, help="exactly this number of runs, however long they take")
    parser.add_argument("--jobs", type=at_least_one, help=f"runs at the same time (default {JOBS})")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="where logs of bad runs are kept (a temporary folder)")
    parser.add_argument("--scenario", choices=[*filter(None, TAKES)], help="what to play instead of random runs")
    parser.add_argument("--records", type=at_least_one, help="of each of three outages, or redriven")
    parser.add_argument("--rate", type=positive, help="of an outage or a redrive, records per second")
    return parser


if __name__ == "__main__":
    sys.exit(main())
