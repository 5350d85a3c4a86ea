"""One run of tests in a scratch copy, and what it says about a mutant."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.scratch_copy import environment_of, scratch_copy

TEST_TIMEOUT_S = 120
# Beside the tests' own time: imports, a Spark session.
OVERHEAD_S = 120
SHOWN_CHARACTERS = 160
LOOK_S = 0.2
# A change that merely doesn't run any more proves nothing about what it takes away.
CRASHES = re.compile(r"(AttributeError|ImportError|ModuleNotFoundError|NameError|SyntaxError|TypeError)\b")


class Verdict(StrEnum):
    """``broken``: the entry doesn't fit the code, or something else than the named test failed."""

    KILLED = "killed"
    SURVIVED = "survived"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Run:
    """What pytest said; ``status`` None when it had to be killed."""

    status: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant's verdict, why in a line, and pytest's output."""

    verdict: Verdict
    why: str
    output: str


def try_mutant(mutant: Mutant, stack: Mapping[str, str], broken_off: threading.Event) -> Trial:
    """Plant the mutant in a copy of its own and run its test against the stack that these variables name."""
    with scratch_copy() as copy:
        if problem := mutant.plant(copy):
            return Trial(Verdict.BROKEN, problem, "")
        return judge(mutant.test, run_tests(copy, [mutant.test], stack, broken_off))


def run_tests(
    copy: Path, tests: Sequence[str], stack: Mapping[str, str], broken_off: threading.Event, shown: bool = False
) -> Run:
    """Run tests of the copy, with the copy as pytest's root; ``shown`` lets their output through instead of keeping it.

    A run that takes far too long, or is broken off, is killed with all that it started; so is one during which anything
    is raised here, a KeyboardInterrupt say. ``broken_off`` is for threads, to which no KeyboardInterrupt comes.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    options = [f"--rootdir={copy}", f"--timeout={TEST_TIMEOUT_S}", "--hypothesis-profile=verdict"]
    process = subprocess.Popen(
        [*command, *options, *tests],
        cwd=copy,
        env={**environment_of(copy), **stack},
        stdin=subprocess.DEVNULL,
        stdout=None if shown else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output = _output(process, TEST_TIMEOUT_S * len(tests) + OVERHEAD_S, broken_off)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        output, _ = process.communicate()
        return Run(None, output or "")
    except BaseException:
        _kill_group(process)
        process.wait()
        raise
    return Run(process.returncode, output)


def _output(process: subprocess.Popen[str], limit_s: float, broken_off: threading.Event) -> str:
    """Return what it said until its end; raises TimeoutExpired when that takes too long, or is no longer wanted."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            output, _ = process.communicate(timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            if broken_off.is_set() or time.monotonic() > deadline:
                raise
        else:
            return output or ""


def _kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def judge(test: str, run: Run) -> Trial:
    """A mutant is killed when the very test it names fails, in its own body: not its set-up, nor the collection."""
    if run.status == 0 and re.search(r"^\d+ passed", run.output, re.MULTILINE):
        return Trial(Verdict.SURVIVED, f"{test} passes", run.output)
    failed = re.search(rf"^FAILED {re.escape(test)}(?:\[.*?\])?(?: - (?P<why>.*))?$", run.output, re.MULTILINE)
    if run.status == 1 and failed is not None:
        why = (failed["why"] or "")[:SHOWN_CHARACTERS]
        return Trial(Verdict.BROKEN if CRASHES.match(why) else Verdict.KILLED, why, run.output)
    return Trial(Verdict.BROKEN, f"pytest ended with status {run.status}, {test} did not fail itself", run.output)
