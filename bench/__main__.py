"""Measure this project beside what users would pick instead.

    make bench                one round of every row, under 40 minutes
    make bench ROW=2          one round of one row
    make bench FULL=1         three rounds of every row, under three hours; goes on where one was interrupted

or, without make, `python -m bench [--row N ...] [--full]`. One round goes to .waitreg/bench/, a FULL run to bench/:
what was measured (rounds.jsonl), the tables (RESULTS.md) and the plots. Let nothing else run on the machine meanwhile.

A FULL run leaves out the rounds that this commit has been measured in on this machine already. Ctrl-C ends it; what was
measured stays, and the same command goes on. Another commit's figures are never used, nor those of other versions.

Exit status: 0 everything was measured (met or not), 1 a turn failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from bench.harness.catalogue import row_numbers, rows_of
from bench.harness.commit import product_commit
from bench.harness.judgement import judgements
from bench.harness.ledger import Ledger
from bench.harness.lock import BusyError, lock_file, only_one
from bench.harness.machine import busyness, machine, summary, versions
from bench.harness.measurement import Entry, Origin
from bench.harness.number import shown_duration
from bench.harness.peers import fetch_peers
from bench.harness.process import ROOT
from bench.harness.progress import Progress, seconds_of_rows
from bench.harness.report import lines_table, unmeasured, write_report
from bench.harness.rounds import rounds_of
from bench.harness.row import Bench, Row
from bench.harness.run import ChangedTreeError, Run
from bench.harness.servers import embedded_servers
from wait_registry.errors import WaitRegistryError

FULL_ROUNDS: Final = 3
FULL_RESULTS: Final = ROOT / "bench"
ROUND_RESULTS: Final = ROOT / ".waitreg" / "bench"
SCRATCH: Final = ROUND_RESULTS / "scratch"
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        return _list()
    try:
        with only_one(lock_file()):
            return _report_only(options) if options.report_only else _measure(options)
    except (BusyError, WaitRegistryError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; what was measured stays, and `--full` goes on from there", file=sys.stderr)
        return INTERRUPTED


def _measure(options: argparse.Namespace) -> int:
    if options.fetch:
        fetch_peers()
    catalogue = rows_of(row_numbers())  # all of them: the results are written whole
    rows = [row for row in catalogue if row.number in (options.row or row_numbers())]
    ledger, rounds = _ledger(full=options.full), _rounds(full=options.full)
    origin = _origin(full=options.full)
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    run = Run(
        id=run_id,
        command=_command(options),
        ledger=ledger,
        origin=lambda: _origin(full=options.full),
        versions=versions(),
        rounds=rounds,
        scratch=SCRATCH / run_id,
        progress=Progress(seconds_of_rows(_told(ledger), full=options.full)),
        servers=embedded_servers,
        busyness=busyness,
    )
    failures: list[str] = []
    try:
        failures += run.play(
            rows,
            resume=options.full and not options.fresh,
            played=lambda row: _show(row, ledger.read().entries, origin),
        )
    except ChangedTreeError as error:
        failures.append(str(error))
    entries = ledger.read().entries
    report = write_report(ledger.path.parent, catalogue, entries, origin, rounds)
    unworkable = _conclude(rows, entries, origin, report)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures or unworkable else 0


def _report_only(options: argparse.Namespace) -> int:
    """Write the results anew from what was measured last, wherever that was."""
    ledger = _ledger(full=options.full)
    entries = [entry for entry in _told(ledger) if entry.stamp.origin.full == options.full]
    if not entries:
        print(f"bench: {os.path.relpath(ledger.path)} holds no measurement: measure first", file=sys.stderr)
        return 1
    origin = entries[-1].stamp.origin
    rows = rows_of(row_numbers())
    report = write_report(ledger.path.parent, rows, entries, origin, _rounds(full=options.full))
    return 1 if _conclude(rows, entries, origin, report) else 0


def _list() -> int:
    nowhere = Bench("", "", Path(), quick=False, full=False, say=lambda _: None)
    for row in rows_of(row_numbers()):
        print(f"{row.number}. {row.title}")
        for case in row.cases(nowhere):
            names = ", ".join(contender.name for contender in case.contenders)
            print(f"   {case.name}: {names}{f' ({case.turns} turns)' if case.turns > 1 else ''}")
    return 0


def _show(row: Row, entries: Sequence[Entry], origin: Origin) -> None:
    measured = [playing.as_round() for playing in rounds_of(entries, row.number, origin)]
    print(f"\nRow {row.number}: {row.title}\n\n{lines_table(judgements(row, measured))}\n", flush=True)


def _conclude(rows: Sequence[Row], entries: Sequence[Entry], origin: Origin, report: Path) -> list[str]:
    """Say how long each row took and where the results are; return the lines that couldn't be worked out."""
    unworkable = []
    for row in rows:
        playings = rounds_of(entries, row.number, origin)
        taken = [shown_duration(playing.end.seconds) for playing in playings if playing.end is not None]
        print(f"row {row.number}: {', '.join(taken) or 'not measured'}")
        judged = judgements(row, [playing.as_round() for playing in playings]) if playings else []
        unworkable += [f"row {row.number}: {one.line.text}" for one in judged if one.verdict == "failed"]
    print(f"{os.path.relpath(report)} has the results")
    if lacking := unmeasured(rows_of(row_numbers()), entries, origin):
        print(
            f"bench: the results now say `not measured` of {lacking}: nobody has measured that on commit "
            f"{origin.commit}, this machine and these versions",
            file=sys.stderr,
        )
    return unworkable


def _told(ledger: Ledger) -> Sequence[Entry]:
    contents = ledger.read()
    for complaint in contents.complaints:
        print(f"bench: {complaint}", file=sys.stderr)
    return contents.entries


def _ledger(*, full: bool) -> Ledger:
    return Ledger((FULL_RESULTS if full else ROUND_RESULTS) / "rounds.jsonl")


def _rounds(*, full: bool) -> int:
    return FULL_ROUNDS if full else 1


def _origin(*, full: bool) -> Origin:
    return Origin(product_commit(ROOT), machine(), full, summary(versions()))


def _command(options: argparse.Namespace) -> str:
    """Return the command, whatever it was typed as."""
    rows = [f" --row {number}" for number in options.row or ()]
    return f"python -m bench{' --full' if options.full else ''}{' --fresh' if options.fresh else ''}{''.join(rows)}"


def _take_signals() -> None:
    """Let these interrupt, also where a shell that started us in the background has SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers = row_numbers()
    parser.add_argument(
        "--row", type=int, action="append", choices=numbers, metavar="N", help="only this one; may be repeated"
    )
    parser.add_argument("--full", action="store_true", help="three rounds, resumed where one was interrupted")
    parser.add_argument("--fresh", action="store_true", help="with --full: measure again what has been measured")
    parser.add_argument(
        "--fetch", action="store_true", help="before measuring: `make bench-peers`, as `make bench` does"
    )
    parser.add_argument("--report-only", action="store_true", help="write the results of the last measurements anew")
    parser.add_argument("--list", action="store_true", help="print the rows with their cases and contenders")
    return parser


if __name__ == "__main__":
    _take_signals()
    sys.exit(main())
