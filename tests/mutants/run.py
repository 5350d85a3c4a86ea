"""Plant each mutant and see a test of its clause fail.

    make mutants                                    all of them
    make mutants ARGS="--only NAME [NAME ...]"      some of them
    make mutants ARGS=--list                        what there is

One embedded stack serves all runs; every test has topics and a schema of its own. Exit status 0 if every mutant was
killed, 1 if one survived, 2 if a run shows nothing (a test fails unchanged, or was skipped, or the mutant can't be
planted), 130 if it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from threading import Event
from typing import Final

from tests.evidence import all_tests
from tests.mutants.mutant import ROOT, Mutant, all_mutants, planted
from tests.support.chosen_stack import POSTGRES_SETTINGS
from tests.support.programs import INTERRUPTED, at_least_one, signals_interrupt
from tests.support.stack import KAFKA_VARIABLE, POSTGRES_VARIABLE
from wait_registry.local.stack import EmbeddedStack

TEST_TIMEOUT_S: Final = 120
OVERHEAD_S: Final = 120  # imports, a Spark session
SHOWN: Final = 4_000
# A change that only makes the code crash proves nothing about the safeguard.
CRASHES: Final = re.compile(r"(AttributeError|ImportError|ModuleNotFoundError|NameError|SyntaxError|TypeError)\b")


class Verdict(StrEnum):
    """What the tests of a clause say about its mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOTHING = "shows nothing"


def nodes_of(mutant: Mutant) -> list[str]:
    """Return the tests that must fail: those of the clause."""
    return [test.node for test in all_tests() if mutant.clause in test.clauses]


def judge(status: int | None, output: str) -> tuple[Verdict, str]:
    """Judge a run with a planted mutant by pytest's exit status (None if it was killed) and output."""
    failed = re.search(r"^FAILED (?P<why>.*)$", output, re.MULTILINE)
    if status == 1 and failed is not None:
        why = failed["why"].partition(" - ")[2][:160]
        return (Verdict.NOTHING if CRASHES.match(why) else Verdict.KILLED), why
    if status == 0 and re.search(r"^\d+ passed", output, re.MULTILINE):
        return Verdict.SURVIVED, "its tests pass"
    return Verdict.NOTHING, f"pytest ended with status {status}"


def run_tests(tests: Sequence[str], variables: Mapping[str, str], stopped: Event) -> tuple[int | None, str]:
    """Run tests until one fails; return the exit status, None if the run had to be killed, and the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, f"--timeout={TEST_TIMEOUT_S}", "--hypothesis-profile=verdict", *tests],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "300", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + TEST_TIMEOUT_S * len(tests) + OVERHEAD_S
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=0.2)
                return process.returncode, output
            if stopped.is_set() or time.monotonic() > deadline:
                return None, ""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def try_all(chosen: Sequence[Mutant], stack: Mapping[str, str], jobs: int) -> int:
    """Run the tests unchanged, then with each mutant; print a line per mutant and return the exit status."""
    stopped = Event()

    def tried(mutant: Mutant) -> tuple[Verdict, str, str]:
        status, output = run_tests(nodes_of(mutant), {**stack, **planted(mutant)}, stopped)
        return *judge(status, output), output

    tests = sorted({test for mutant in chosen for test in nodes_of(mutant)})
    pool = ThreadPoolExecutor(jobs)
    try:
        print(f"{len(tests)} tests unchanged", flush=True)
        status, output = pool.submit(run_tests, tests, stack, stopped).result()
        if status != 0:
            print(f"{output[-SHOWN:]}\na test doesn't pass unchanged, so its failing would show nothing")
            return 2
        verdicts = []
        for mutant, (verdict, why, output) in zip(chosen, pool.map(tried, chosen), strict=True):
            verdicts.append(verdict)
            print(f"[{len(verdicts)}/{len(chosen)}] {verdict:8} {mutant.name}: {why}", flush=True)
            if verdict is not Verdict.KILLED:
                print(output[-SHOWN:], flush=True)
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict))
    return 2 if Verdict.NOTHING in verdicts else int(Verdict.SURVIVED in verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these mutants only")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--jobs", type=at_least_one, default=2, metavar="N", help="mutants tried at once (default 2)")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.only) - {mutant.name for mutant in all_mutants()}):
        print(f"no mutant named {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    chosen = [mutant for mutant in all_mutants() if not options.only or mutant.name in options.only]
    if options.list:
        print("\n".join(f"{mutant.clause:6} {mutant.name}: {mutant.breaks}" for mutant in chosen))
        return 0
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
