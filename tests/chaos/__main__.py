"""Random runs by seed, and what is broken by none of them: `python -m tests.chaos --help`."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import ledger
from tests.chaos.ledger import BROKEN, KEPT, Entry
from tests.chaos.report import last_line, line_of
from tests.chaos.scenarios import SCENARIOS, Wanted
from tests.chaos.workers import Plan, play_all

DESCRIPTION = """\
Plays seeds n, n+1, ... until the minutes are over, at least one. A seed decides the load (records of every odd shape),
the settings (slots, TTL, group protocol, processors, sinks, sweepers, ...) and two to six faults of processes, links,
broker, Postgres, downstream, topics. Services are real processes on a real broker and a real Postgres. When all is
healed and nothing is left to do, the run is judged from outside: what was published, called, committed, written.

A line a run goes to standard output and to docs/chaos-runs.csv; a run that breaks a promise prints its schedule and the
whole story of the records it is about, and keeps its logs. The same seed plays the same schedule again."""
EPILOG = """\
examples:
  make chaos SEED=1 MINUTES=30
  make chaos SEED=4711 RUNS=1 JOBS=1
  make chaos SCENARIO=outage RECORDS=200000
  make chaos SCENARIO=soak MINUTES=60

exit codes: 0 every promise was kept, 1 one was broken or no run could be judged, 2 usage, 130 interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, play, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    folder = given.logs or Path(tempfile.mkdtemp(prefix="waitreg-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    # SIGTERM ends everything in order too; and a shell's background job is born deaf to SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return _play_seeds(given, folder) if given.scenario is None else _play_scenario(given, folder)
    except KeyboardInterrupt:
        print(f"interrupted; logs: {folder}")
        return 130


def _play_seeds(given: argparse.Namespace, folder: Path) -> int:
    plan = Plan(given.seed, given.minutes, given.runs, given.jobs, ledger.commit(), folder)
    entries: list[Entry] = []
    try:
        for played in play_all(plan):
            entries.append(played.entry)
            ledger.append(played.entry, given.ledger)
            print(line_of(played.entry), *([played.told] if played.told else []), sep="\n", flush=True)
    finally:
        print(last_line(entries))
    if given.logs is None and not any(file.is_dir() for file in folder.iterdir()):
        shutil.rmtree(folder)
    verdicts = {entry.verdict for entry in entries}
    return 1 if BROKEN in verdicts or KEPT not in verdicts else 0


def _play_scenario(given: argparse.Namespace, folder: Path) -> int:
    logging.getLogger().addHandler(logging.NullHandler())
    kept = SCENARIOS[given.scenario](Wanted(given.records, given.rate, given.minutes, folder))
    print("kept" if kept else f"NOT kept; logs: {folder}")
    if kept and given.logs is None:
        shutil.rmtree(folder)
    return 0 if kept else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, metavar="n", help="the first one (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=1.0, metavar="m", help="how long (default %(default)s)")
    parser.add_argument("--runs", type=int, metavar="k", help="exactly so many runs, however long they take")
    parser.add_argument("--jobs", type=int, default=2, help="runs beside each other (default %(default)s)")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="where logs of bad runs are kept (a temporary folder)")
    parser.add_argument("--ledger", type=Path, default=ledger.LEDGER, metavar="CSV", help="default %(default)s")
    scenarios = parser.add_argument_group("instead of random runs")
    scenarios.add_argument("--scenario", choices=sorted(SCENARIOS), help="outage: Postgres, the sink, and both away")
    scenarios.add_argument(
        "--records", type=int, default=1_000_000, help="of an outage, while somebody is away (default %(default)s)"
    )
    scenarios.add_argument("--rate", type=float, default=4000.0, help="of an outage, a second (default %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
