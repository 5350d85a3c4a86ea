"""A child process that can't outlive us: started, stopped, paused and killed through its guard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from waitreg.local import guard
from waitreg.local.account import Account


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and how it is ended."""

    command: Sequence[str]
    log: Path
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 15.0
    remove_when_orphaned: Path | None = None


class GuardedChild:
    """One running program; every method may be called when it has ended already."""

    def __init__(self, program: Program) -> None:
        """Start the program.

        Raises:
            ChildProcessError: it could not be started; the message has the end of its log.
        """
        # Without the environment: it may hold secrets, and every user sees a command line.
        order = {**asdict(program), "environment": None, "parent": os.getpid()}
        with program.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, json.dumps(order, default=str)],
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **program.environment},
                start_new_session=True,  # Ctrl-C in a terminal is for us; we end the children in order
            )
        assert self._guard.stdout is not None
        with self._guard.stdout as stdout:
            line = stdout.readline()
        if not line.strip():
            self._guard.wait()
            raise ChildProcessError(f"{program.command[0]} could not be started:\n{log_tail(program.log)}")
        self.pid = int(line)

    @property
    def exit_status(self) -> int | None:
        """The exit status as a shell shows it (128 + signal number), None while it runs."""
        return self._guard.poll()

    def stop(self) -> None:
        """Ask it to stop, wait, and kill it when its grace is over."""
        self._guard.terminate()
        self._guard.wait()

    def kill(self) -> None:
        """Kill it and all its descendants at once (SIGKILL), as a crash of the machine would."""
        if self.exit_status is None:
            guard.signal_tree(self.pid, signal.SIGKILL)
        self._guard.wait()

    def pause(self) -> None:
        """Freeze it and all its descendants (SIGSTOP)."""
        guard.signal_tree(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it and all its descendants (SIGCONT)."""
        guard.signal_tree(self.pid, signal.SIGCONT)


def log_tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, indented, for an error message."""
    if not log.is_file():
        return f"    ({log} was not written)"
    tail = log.read_text("utf-8", errors="replace").splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in tail)
