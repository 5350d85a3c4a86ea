"""Plant each committed fault in a scratch copy and see its named test turn red.

    make mutants                                    all of them
    make mutants ARGS="--only NAME [NAME ...]"      some of them
    make mutants ARGS=--list                        what there is

One embedded stack serves all runs; every test has topics and a schema of its own. Exit status 0 when every mutant was
killed, 1 when one survived, 2 when the list itself is wrong (a text that isn't there any more, a test that fails
unchanged), 130 when it was interrupted; no test runs any more then.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.mutant import Mutant, load_mutants
from tests.mutants.scratch_copy import scratch_copy
from tests.mutants.trial import Trial, Verdict, run_tests, try_mutant
from tests.support.argument_types import at_least_one
from tests.support.chosen_stack import POSTGRES_SETTINGS
from tests.support.given_stack import KAFKA_VARIABLE, POSTGRES_VARIABLE
from tests.support.interruption import INTERRUPTED, signals_interrupt
from wait_registry.local.stack import EmbeddedStack

SHOWN_OUTPUT = 4_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; returns the exit status."""
    options = _parser().parse_args(arguments)
    known = load_mutants()
    if unknown := sorted(set(options.only) - {mutant.name for mutant in known}):
        print(f"no mutant named {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    chosen = [mutant for mutant in known if not options.only or mutant.name in options.only]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name}  [{mutant.promise}]  {mutant.breaks}\n    {mutant.test}")
        return 0
    signals_interrupt()
    try:
        return _try_all(chosen, options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _try_all(chosen: Sequence[Mutant], options: argparse.Namespace) -> int:
    began = time.monotonic()
    with EmbeddedStack(postgres_settings=POSTGRES_SETTINGS) as running:
        stack = {KAFKA_VARIABLE: running.bootstrap_servers, POSTGRES_VARIABLE: running.postgres_url}
        if not options.no_baseline and not baseline(chosen, stack):
            print("a named test doesn't pass unchanged: its failing would prove nothing", file=sys.stderr)
            return 2
        count = play(chosen, stack, options.jobs)
    print(", ".join(f"{count[verdict]} {verdict}" for verdict in Verdict) + f" in {time.monotonic() - began:.0f} s")
    if count[Verdict.BROKEN]:
        return 2
    return 1 if count[Verdict.SURVIVED] else 0


def baseline(mutants: Sequence[Mutant], stack: Mapping[str, str]) -> bool:
    """Return whether every named test passes without any change."""
    tests = sorted({mutant.test for mutant in mutants})
    print(f"{len(tests)} tests unchanged:", flush=True)
    with scratch_copy() as copy:
        return run_tests(copy, tests, stack, threading.Event(), shown=True).status == 0


def play(mutants: Sequence[Mutant], stack: Mapping[str, str], jobs: int) -> Counter[Verdict]:
    """Try all, ``jobs`` at a time, print a line each, and return how many had which verdict."""
    count: Counter[Verdict] = Counter()
    broken_off = threading.Event()

    def timed(mutant: Mutant) -> tuple[Trial, float]:
        began = time.monotonic()
        return try_mutant(mutant, stack, broken_off), time.monotonic() - began

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for number, (mutant, (trial, took_s)) in enumerate(zip(mutants, pool.map(timed, mutants), strict=True), 1):
                count[trial.verdict] += 1
                place = f"[{number}/{len(mutants)}]"
                print(f"{place} {trial.verdict:8} {mutant.name} ({took_s:.0f} s): {trial.why}", flush=True)
                if trial.verdict is not Verdict.KILLED:
                    print(trial.output[-SHOWN_OUTPUT:], flush=True)
        except BaseException:
            broken_off.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return count


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these mutants only")
    parser.add_argument("--list", action="store_true", help="print the list and stop")
    parser.add_argument("--no-baseline", action="store_true", help="skip the run without any change")
    parser.add_argument("--jobs", type=at_least_one, default=2, metavar="N", help="mutants tried at once (default 2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
