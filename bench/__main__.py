"""Measure this project, and what users would pick instead.

    make bench                        one round of every row, under 40 minutes
    make bench ROW=2                  one round of one row
    make bench FULL=1                 three rounds of every row, under three hours
    make bench ROW=4 ARGS="--against ../other-checkout"    this checkout against another one, by turns

One round goes to .waitreg/bench/, a FULL run to bench/: the figures (rounds.jsonl) and the tables
(RESULTS.md). A run replaces what was measured of its rows before. Let nothing else run on the machine meanwhile.

Exit status: 0 everything was measured (met or not), 1 a turn failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.against import compare
from bench.harness.data import Data
from bench.harness.machine import machine, noise, product_commit, versions
from bench.harness.play import Turn, play
from bench.harness.report import judged, lines_table, shown, write_report
from bench.harness.row import ROOT, Bench, Checkout, Row
from bench.rows import calls, ceiling, concurrency, console, idling, pattern_cost, sink, sink_scaling, sweep, trickle
from wait_registry.errors import WaitRegistryError
from waitreg.local.stack import EmbeddedStack

ROWS: Final[Mapping[int, Row]] = {
    module.ROW.number: module.ROW
    for module in (concurrency, ceiling, idling, sink, sweep, sink_scaling, pattern_cost, console, trickle, calls)
}
FULL_ROUNDS: Final = 3
RESULTS: Final = ROOT / ".waitreg" / "bench"
FIRST_FIGURES: Final = 6
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; returns the exit status."""
    options = _parser().parse_args(arguments)
    rows = [ROWS[number] for number in options.row or ROWS]
    try:
        if options.report:
            print(write_report(list(ROWS.values()), Data.read(_file(options))))
            return 0
        if options.fetch and not options.against:
            subprocess.run(["make", "--no-print-directory", "bench-peers"], cwd=ROOT, check=True)
        return _against(rows, options) if options.against else _measure(rows, options)
    except (WaitRegistryError, OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; the data file keeps what was measured", file=sys.stderr)
        return INTERRUPTED


def _measure(rows: Sequence[Row], options: argparse.Namespace) -> int:
    data, run_id = Data.read(_file(options)), f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    command = f"make bench{' FULL=1' if options.full else ''}"
    described = {"run": run_id, "commit": product_commit(), "date": _now(), "command": command, "machine": machine()}
    data.begin({**described, "versions": versions()}, [row.number for row in rows])
    failures: list[str] = []
    for row in rows:
        for number in range(1, (FULL_ROUNDS if options.full else 1) + 1):
            failures += _round(row, number, data, run_id, options.full)
        print(f"\nRow {row.number}: {row.title}\n\n{lines_table(judged(row, data.rounds(row.number)))}\n", flush=True)
    print(write_report(list(ROWS.values()), data))
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _round(row: Row, number: int, data: Data, run_id: str, full: bool) -> list[str]:
    title, began, busy = f"row {row.number}, round {number}", time.monotonic(), noise()

    def say(text: str) -> None:
        print(f"[{title}, {(time.monotonic() - began) / 60:.1f} min] {text}", flush=True)

    def keep(turn: Turn) -> None:
        some = list(turn.figures.items())[:FIRST_FIGURES]
        say(turn.failure or ", ".join(f"{name} {shown(value)}" for name, value in some))
        data.add_turn(run_id, row.number, number, turn)
        if turn.failure and not (stack.broker.running and stack.postgres.running):
            raise RuntimeError("the broker or Postgres has ended")

    folder = RESULTS / "scratch" / run_id / f"row-{row.number}-round-{number}"
    say(f"{row.title}{f'; {busy}' if busy else ''}")
    try:
        with EmbeddedStack() as stack:
            bench = Bench(stack.bootstrap_servers, stack.postgres_url, folder, full=full, say=say, round=number)
            failures = play(row, bench, keep)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends this round; the others continue
        failures = [f"{type(error).__name__}: {error}"]
    if not failures:
        shutil.rmtree(folder, ignore_errors=True)
    ended = {"seconds": round(time.monotonic() - began, 1), "date": _now(), "noise": busy}
    data.add({"run": run_id, "row": row.number, "round": number, **ended})
    return [f"{title}: {failure}" for failure in failures]


def _against(rows: Sequence[Row], options: argparse.Namespace) -> int:
    other = Checkout.at(Path(options.against))
    with tempfile.TemporaryDirectory(prefix="waitreg-bench-") as folder:
        for row in rows:
            with EmbeddedStack() as stack:
                bench = Bench(stack.bootstrap_servers, stack.postgres_url, Path(folder), full=options.full)
                if not row.pairs(bench):
                    raise OSError(f"row {row.number} can't compare two checkouts; rows 2, 4, 5, 9 and 10 can")
                compare(row, bench, other, options.turns, options.at_once)
    return 0


def _file(options: argparse.Namespace) -> Path:
    return (ROOT / "bench" if options.full else RESULTS) / "rounds.jsonl"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=raw)
    row_help = "only this row; may be repeated"
    parser.add_argument("--row", type=int, action="append", choices=ROWS, metavar="N", help=row_help)
    parser.add_argument("--full", action="store_true", help="three rounds, larger sizes, results in bench/")
    parser.add_argument("--against", metavar="CHECKOUT", help="compare with the product of another checkout, by turns")
    parser.add_argument("--at-once", action="store_true", help="with --against: both checkouts work at the same time")
    parser.add_argument("--turns", type=int, default=5, help="with --against: turns of each checkout (5)")
    parser.add_argument("--fetch", action="store_true", help="run `make bench-peers` before measuring")
    parser.add_argument("--report", action="store_true", help="only write the results again from the data file")
    return parser


def _take_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt too, and SIGINT where a shell that started us in the background ignores it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    _take_signals()
    sys.exit(main())
