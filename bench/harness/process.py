"""What is measured runs as a guarded process of its own; none of its processes outlives its turn."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bench.harness.row import ROOT
from waitreg.local.child import GuardedChild, Program, log_tail

# Of the caller's settings only the place of the jars counts.
JARS_VARIABLE: Final = "WAITREG_SPARK__JARS_DIR"
# Modules of the benchmark are found here and the product's are not, so that another checkout imports its own.
IMPORTS: Final = ROOT / ".waitreg" / "bench" / "imports"
BYTES_PER_MB: Final = 1_000_000
STOP_S: Final = 60.0
POLL_S: Final = 0.02


class ProcessError(RuntimeError):
    """A process didn't do what it was started for; the message has the end of what it said."""


class Child:
    """A running process."""

    def __init__(self, name: str, process: GuardedChild, log: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = log

    def run(self, deadline_s: float, look: Callable[[], None] = lambda: None) -> str:
        """Wait until it ends and return what it said, and look at it meanwhile; raises ProcessError when it failed or
        takes longer."""
        deadline = time.monotonic() + deadline_s
        while (status := self._process.exit_status) is None:
            if time.monotonic() > deadline:
                raise self.error(f"still ran after {deadline_s:g} s")
            look()
            time.sleep(POLL_S)
        if status:
            raise self.error(f"ended with status {status}")
        return self._log.read_text("utf-8", errors="replace")

    def result(self, deadline_s: float) -> dict[str, float]:
        """Wait until it ends and return the JSON object that it printed; raises ProcessError when it failed."""
        printed = [line for line in self.run(deadline_s).splitlines() if line.startswith("{")]
        if not printed:
            raise self.error("printed no figures")
        return {name: float(value) for name, value in json.loads(printed[-1]).items() if value is not None}

    def stop(self) -> None:
        """Ask it to end (SIGTERM) and wait; raises ProcessError unless it ends with 0."""
        self._process.stop()
        self.run(0)

    def require_running(self) -> None:
        """Raise ProcessError when it has ended."""
        if (status := self._process.exit_status) is not None:
            raise self.error(f"ended by itself with status {status}")

    def error(self, what: str) -> ProcessError:
        """Return an error that says what it did, and the end of what it said."""
        return ProcessError(f"{self.name} {what}; it said last:\n{log_tail(self._log)}")


@contextmanager
def started(
    argv: Sequence[str], directory: Path, env: Mapping[str, str] | None = None, *, name: str = "contender"
) -> Iterator[Child]:
    """Start a process in a turn's folder, where no settings file is read; after the block all of its tree is gone.

    It has no settings but those given, and the benchmark's modules to import.
    """
    IMPORTS.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (IMPORTS / "bench").symlink_to(ROOT / "bench")
    log = directory / f"{name}-{len(list(directory.glob(f'{name}-*.log'))) + 1}.log"
    variables = {**(env or {}), "PYTHONPATH": str(IMPORTS)}
    kept = {*variables, JARS_VARIABLE}
    unset = [f"--unset={each}" for each in os.environ if each.startswith("WAITREG_") and each not in kept]
    process = GuardedChild(Program(["env", *unset, *argv], log, directory, variables, grace_s=STOP_S))
    try:
        yield Child(name, process, log)
    finally:
        process.kill()
