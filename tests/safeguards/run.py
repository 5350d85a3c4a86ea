"""Remove each safeguard from the product and see a test of its clause fail.

    make mutants                                    all of them
    make mutants ARGS="--part 1/3"                  a third of them
    make mutants ARGS="--only NAME [NAME ...]"      some of them
    make mutants ARGS=--list                        what there is

One embedded stack serves all runs; every test has topics and a schema of its own. The tests that failed then run
unchanged, since a failure that has another cause shows nothing. Safeguards that the simulation alone shows are removed
by `tests/simulation/test_safeguards.py`. Exit status 0 if the absence of every safeguard was found, 1 if one wasn't, 2
if a run shows nothing (its test fails unchanged, was skipped, or crashed), 130 if it was interrupted.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from threading import Event
from typing import Final

from tests.evidence import all_tests
from tests.safeguards.catalogue import ROOT, Safeguard, all_safeguards, removed
from tests.support.chosen_stack import POSTGRES_SETTINGS
from tests.support.programs import INTERRUPTED, at_least_one, signals_interrupt
from tests.support.pytest_run import run_pytest
from tests.support.stack import KAFKA_VARIABLE, POSTGRES_VARIABLE
from waitreg.local.stack import EmbeddedStack

TEST_TIMEOUT_S: Final = 120
OVERHEAD_S: Final = 120  # imports, a Spark session
SHOWN: Final = 4_000
# Cheap tests first. The simulation has its own way to remove safeguards.
FOLDERS: Final = ("unit", "contract", "fuzz", "refusals", "integration", "security", "faults")
# A change that only makes the code crash proves nothing about the safeguard.
CRASHES: Final = re.compile(r"(AttributeError|ImportError|ModuleNotFoundError|NameError|SyntaxError|TypeError)\b")


class Verdict(StrEnum):
    """What the tests of a clause say of a removed safeguard."""

    FOUND = "found"
    SURVIVED = "survived"
    NOTHING = "shows nothing"


def nodes_of(safeguard: Safeguard) -> list[str]:
    """Return the tests of which one must fail: those of the clause, the quick ones first."""
    nodes = [test.node.split("/", 2) for test in all_tests() if safeguard.clause in test.clauses]
    return ["/".join(node) for folder in FOLDERS for node in nodes if node[1] == folder]


def judge(status: int | None, output: str) -> tuple[Verdict, str, str]:
    """Return what a run shows, the test that failed and why, from pytest's exit status (None: killed) and output."""
    failed = re.search(r"^FAILED (?P<test>\S+::\w+)(?P<why>.*)$", output, re.MULTILINE)
    if status == 1 and failed is not None:
        why = failed["why"].partition(" - ")[2][:160]
        return (Verdict.NOTHING if CRASHES.match(why) else Verdict.FOUND), failed["test"], why
    if status == 0 and re.search(r"^\d+ passed", output, re.MULTILINE):
        return Verdict.SURVIVED, "", "its tests pass"
    return Verdict.NOTHING, "", f"pytest ended with status {status}"


def run_tests(tests: Sequence[str], given: Mapping[str, str], stopped: Event, *options: str) -> tuple[int | None, str]:
    """Run tests; return the exit status, None if the run had to be killed, and the output."""
    arguments = [f"--timeout={TEST_TIMEOUT_S}", *options, *tests]
    return run_pytest(arguments, ROOT, given, TEST_TIMEOUT_S * len(tests) + OVERHEAD_S, stopped)


def try_all(chosen: Sequence[Safeguard], stack: Mapping[str, str], jobs: int) -> int:
    """Try each safeguard, then run the tests that failed unchanged; print a line for each, return the exit status."""
    stopped = Event()

    def tried(safeguard: Safeguard) -> tuple[Verdict, str]:
        began_s = time.monotonic()
        status, output = run_tests(nodes_of(safeguard), {**stack, **removed(safeguard)}, stopped, "-x")
        verdict, test, why = judge(status, output)
        print(f"{verdict} {safeguard.name}, {time.monotonic() - began_s:.0f} s, {test}: {why}", flush=True)
        if verdict is not Verdict.FOUND:
            print(output[-SHOWN:], flush=True)
        return verdict, test

    pool = ThreadPoolExecutor(jobs)
    try:
        results = dict(zip((each.name for each in chosen), pool.map(tried, chosen), strict=True))
        tests = sorted({test for _, test in results.values() if test})
        print(f"{len(tests)} tests that failed, unchanged", flush=True)
        status, output = pool.submit(run_tests, tests, stack, stopped).result() if tests else (0, "")
        failing = re.findall(r"^(?:FAILED|ERROR) (\S+::\w+)", output, re.MULTILINE) if status in (0, 1) else tests
        print(output[-SHOWN:] if failing else "all pass", flush=True)
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for name, (verdict, test) in results.items():
        by_verdict[Verdict.NOTHING if test in failing else verdict].append(name)
    for verdict, names in by_verdict.items():
        print(f"{len(names)} {verdict}", "" if verdict is Verdict.FOUND else " ".join(names))
    return 1 if by_verdict[Verdict.SURVIVED] else 2 if by_verdict[Verdict.NOTHING] else 0


def part(text: str) -> slice:
    """Return which safeguards N/M means, every M-th from the N-th on; raises as `argparse` expects."""
    number, count = (at_least_one(half) for half in text.partition("/")[::2])
    if number > count:
        raise argparse.ArgumentTypeError(f"saw {text!r}, expected for example 1/3")
    return slice(number - 1, None, count)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these safeguards only")
    parser.add_argument("--part", type=part, default="1/1", metavar="N/M", help="every M-th safeguard from the N-th on")
    parser.add_argument("--list", action="store_true", help="print the catalogue and stop")
    parser.add_argument(
        "--jobs", type=at_least_one, default=2, metavar="N", help="safeguards tried at once (default 2)"
    )
    options = parser.parse_args(arguments)
    listed = [each for each in all_safeguards() if each.real]
    if options.list:
        print("\n".join(f"{each.clause:6} {each.name}: {each.without}" for each in all_safeguards()))
        return 0
    if unknown := sorted(set(options.only) - {each.name for each in listed}):
        print(f"no safeguard that tests show is named {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    chosen = [each for each in listed if not options.only or each.name in options.only][options.part]
    signals_interrupt()
    try:
        with EmbeddedStack(postgres_settings=POSTGRES_SETTINGS) as running:
            stack = {KAFKA_VARIABLE: running.bootstrap_servers, POSTGRES_VARIABLE: running.postgres_url}
            return try_all(chosen, stack, options.jobs)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
