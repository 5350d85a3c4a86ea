"""What is measured runs as a process of its own, in its own session; none of its processes outlives its turn.

A *flow contender* consumes a topic and calls a handler for each record, measures itself, prints one JSON object of
numbers on a line and ends with status 0. Whatever else it says goes to standard error, which is kept in a file.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from bench.harness.row import Bench, Figures

ROOT: Final = Path(__file__).parents[2]
# Of the caller's settings the place of the jars alone counts: what is measured is given all others.
SETTINGS: Final = "WAITREG_"
JARS_VARIABLE: Final = "WAITREG_SPARK__JARS_DIR"
TAIL_LINES: Final = 20
TAIL_CHARS: Final = 4000
BYTES_PER_MB: Final = 1_000_000
GONE_S: Final = 10.0
POLL_S: Final = 0.02
PR_SET_PDEATHSIG: Final = 1


class ProcessError(RuntimeError):
    """What was started didn't do what it was started for; the message says what was seen, and its last words."""


class Child:
    """One running process, the leader of a session of its own."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], stdout: Path, stderr: Path) -> None:
        self.name = name
        self.process = process
        self.stdout = stdout
        self.stderr = stderr

    @property
    def pid(self) -> int:
        """Its process id, which is its session's too."""
        return self.process.pid

    def wait(self, deadline_s: float) -> int:
        """Wait until it ends and return its exit status (negative: the signal).

        Raises:
            ProcessError: it still runs after `deadline_s` seconds.
        """
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{self.name} still ran after {deadline_s:g} s{self.last_words()}") from None

    def result(self, deadline_s: float) -> dict[str, float]:
        """Wait until it ends and return the numbers that it printed.

        Raises:
            ProcessError: it took longer than `deadline_s` seconds, failed, or printed anything else.
        """
        status = self.wait(deadline_s)
        if status != 0:
            raise ProcessError(f"{self.name} ended with status {status}{self.last_words()}")
        printed = self.stdout.read_text("utf-8", errors="replace").strip()
        try:
            return numbers_in(printed)
        except ValueError as error:
            raise ProcessError(f"{self.name} printed {_short(printed)!r}: {error}{self.last_words()}") from None

    def terminate(self, deadline_s: float) -> int:
        """Ask it to end (SIGTERM), wait, and return its exit status.

        Raises:
            ProcessError: it still runs after `deadline_s` seconds.
        """
        self.process.terminate()
        return self.wait(deadline_s)

    def last_words(self) -> str:
        """Return the end of what it said, for the end of a message."""
        text = self.stderr.read_text("utf-8", errors="replace").strip() if self.stderr.exists() else ""
        if not text:
            return "; it said nothing"
        lines = text[-TAIL_CHARS:].splitlines()[-TAIL_LINES:]
        return "; it said last:\n" + "\n".join(f"    {line}" for line in lines)

    def kill(self) -> None:
        """Kill every process of its session, ended or not itself, and wait until they are gone.

        A JVM of Spark's is in a group of its own.
        """
        deadline = time.monotonic() + GONE_S
        while (running := _running_in(self.pid)) and time.monotonic() < deadline:
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(POLL_S)
        self.process.wait()


@contextmanager
def started(
    argv: Sequence[str], directory: Path, env: Mapping[str, str] | None = None, *, name: str = "contender"
) -> Iterator[Child]:
    """Start a process; when the block is left, however, all processes of its session are killed.

    It runs in `directory`, where no settings file of the checkout is read, and finds the checkout's modules (`-m
    bench.contenders.x`, handlers). Paths in `argv` are to be absolute.

    Args:
        argv: program and arguments.
        directory: of the turn; gets `NAME.out` and `NAME.err`.
        env: variables besides the inherited ones, of which WAITREG_* are left out.
        name: of the files and in messages.

    Raises:
        ProcessError: it can't be started.
    """
    stdout, stderr = _files(directory, name)
    try:
        with stdout.open("wb") as out, stderr.open("wb") as err:
            process = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=directory,
                env=_environment(env or {}),
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
    except OSError as error:
        raise ProcessError(f"{name} could not be started: {error}") from error
    child = Child(name, process, stdout, stderr)
    try:
        yield child
    finally:
        child.kill()


def end_with_parent() -> None:
    """Have this process killed when the thread that started it is gone, even by SIGKILL; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def run_flow(
    bench: Bench,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    name: str = "contender",
    deadline_s: float = 300.0,
) -> Figures:
    """Run a flow contender to its end and return its figures (see `flow_figures`).

    Args:
        bench: of the turn.
        argv: program and arguments, the contract's among them.
        env: further variables.
        name: of its files and in messages.
        deadline_s: when it is killed; later than its own `--limit-s`, so that it can say how far it came.

    Raises:
        ProcessError: it failed, hung, or printed something else; the message says what was seen.
    """
    with started(argv, bench.directory, env, name=name) as child:
        measured = child.result(deadline_s)
    try:
        return flow_figures(measured)
    except (KeyError, ZeroDivisionError) as error:
        raise ProcessError(f"{name} printed {measured}, which lacks or has 0 for what is divided by: {error}") from None


def flow_figures(measured: Mapping[str, float]) -> dict[str, float]:
    """Return what a flow contender's numbers mean; numbers beyond the contract's stay as they are.

    `records_per_s` and, of CPU (user and system, all threads), `cpu_us_per_record` and `records_per_cpu_s`; the mean
    call in seconds; resident memory in MB of 10^6 bytes, `rss_mb` at its highest and `rss_now_mb` at the end.

    Raises:
        KeyError: `records`, `seconds`, `cpu_s`, `calls_s` or `rss_bytes` is missing.
        ZeroDivisionError: one of the first three is 0.
    """
    figures = {key: value for key, value in measured.items() if key not in ("rss_bytes", "rss_now_bytes")}
    records, seconds, cpu_s = (measured[key] for key in ("records", "seconds", "cpu_s"))
    figures["records_per_s"] = records / seconds
    figures["cpu_us_per_record"] = cpu_s / records * 1e6
    figures["records_per_cpu_s"] = records / cpu_s
    figures["mean_call_s"] = measured["calls_s"] / records
    figures["rss_mb"] = measured["rss_bytes"] / BYTES_PER_MB
    if "rss_now_bytes" in measured:
        figures["rss_now_mb"] = measured["rss_now_bytes"] / BYTES_PER_MB
    return figures


def numbers_in(printed: str) -> dict[str, float]:
    """Return the finite numbers of the one JSON object in a text; members that are null are left out.

    Raises:
        ValueError: it is anything else; the message says what was expected.
    """
    try:
        values = json.loads(printed)
    except ValueError:
        values = None
    if not isinstance(values, dict) or "\n" in printed:
        raise ValueError("expected one line with a JSON object")
    numbers = {key: value for key, value in values.items() if value is not None}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"expected a number for {key}, saw {value!r}")
    return numbers


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(SETTINGS) or key == JARS_VARIABLE
    }
    paths = [str(ROOT), *filter(None, [env.get("PYTHONPATH", inherited.get("PYTHONPATH", ""))])]
    return {**inherited, **env, "PYTHONPATH": os.pathsep.join(paths)}


def _files(directory: Path, name: str) -> tuple[Path, Path]:
    """Return the files for a process' output; a second one of the same name in a turn gets files of its own."""
    stem, number = name.replace("/", "-"), 1
    while (directory / f"{stem}.out").exists():
        number += 1
        stem = f"{name.replace('/', '-')}-{number}"
    return directory / f"{stem}.out", directory / f"{stem}.err"


def _running_in(session: int) -> list[psutil.Process]:
    """Return the processes of a session that run; what has ended and waits for its parent to look doesn't."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}..."
