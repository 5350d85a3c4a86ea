"""What is measured runs as a process in a session of its own; none of its processes outlives its turn."""

from __future__ import annotations

import ctypes
import json
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

from bench.harness.row import ROOT

# Of the caller's settings only the place of the jars counts.
JARS_VARIABLE: Final = "WAITREG_SPARK__JARS_DIR"
# Modules of the benchmark are found here and the product's are not, so that another checkout imports its own.
IMPORTS: Final = ROOT / ".waitreg" / "bench" / "imports"
TAIL_LINES: Final = 20
BYTES_PER_MB: Final = 1_000_000
GONE_S: Final = 10.0
POLL_S: Final = 0.02
PR_SET_PDEATHSIG: Final = 1


class ProcessError(RuntimeError):
    """A process didn't do what it was started for; the message has the end of what it said."""


class Child:
    """A running process, the leader of a session of its own."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], output: Path) -> None:
        self.name = name
        self.process = process
        self._stdout = output
        self._stderr = output.with_suffix(".err")

    @property
    def pid(self) -> int:
        """Its process id, which is its session's too."""
        return self.process.pid

    def wait(self, deadline_s: float) -> int:
        """Wait until it ends and return its exit status; raises ProcessError when it takes longer."""
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{self.name} still ran after {deadline_s:g} s{self.last_words()}") from None

    def result(self, deadline_s: float) -> dict[str, float]:
        """Wait until it ends and return the JSON object that it printed; raises ProcessError when it failed."""
        if status := self.wait(deadline_s):
            raise ProcessError(f"{self.name} ended with status {status}{self.last_words()}")
        printed = self._stdout.read_text("utf-8", errors="replace").strip()
        try:
            return {name: float(value) for name, value in json.loads(printed).items() if value is not None}
        except (ValueError, AttributeError, TypeError):
            raise ProcessError(f"{self.name} printed {printed[:300]!r}, expected figures{self.last_words()}") from None

    def terminate(self, deadline_s: float) -> int:
        """Ask it to end (SIGTERM), wait, and return its exit status."""
        self.process.terminate()
        return self.wait(deadline_s)

    def require_running(self) -> None:
        """Raise ProcessError when it has ended."""
        if (status := self.process.poll()) is not None:
            raise ProcessError(f"{self.name} ended with status {status}{self.last_words()}")

    def last_words(self) -> str:
        """Return the end of what it said, for the end of a message."""
        lines = self._stderr.read_text("utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        return "; it said last:\n" + "\n".join(f"    {line}" for line in lines) if lines else "; it said nothing"

    def kill(self) -> None:
        """Kill every process of its session and wait until they are gone; Spark's JVM is in a group of its own."""
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
    """Start a process in a turn's folder, where no settings file is read; its session is killed after the block."""
    number = len(list(directory.glob(f"{name}-*.out"))) + 1
    output = directory / f"{name}-{number}.out"
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
        process = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=directory,
            env=environment(env or {}),
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    child = Child(name, process, output)
    try:
        yield child
    finally:
        child.kill()


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process: no settings but those given, and the benchmark's modules to import."""
    IMPORTS.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (IMPORTS / "bench").symlink_to(ROOT / "bench")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("WAITREG_") or k == JARS_VARIABLE}
    return {**inherited, **env, "PYTHONPATH": str(IMPORTS)}


def end_with_parent() -> None:
    """Have this process killed when the thread that started it is gone, even by SIGKILL; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _running_in(session: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
