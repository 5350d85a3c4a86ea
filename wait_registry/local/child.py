"""A child process that can't outlive us: started, stopped, paused and killed through its guard."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wait_registry.local import guard
from wait_registry.local.account import Account


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
    inherited_fds: tuple[int, ...] = ()


class GuardedChild:
    """One running program; every method may be called when it has ended already."""

    def __init__(self, program: Program) -> None:
        """Start the program.

        Raises:
            ChildProcessError: it could not be started; the message has the end of its log.
        """
        self._program = program
        account = program.account
        order = {
            "command": [str(part) for part in program.command],
            "log": str(program.log),
            "cwd": str(program.cwd),
            "account": [account.uid, account.gid] if account else None,
            "stop_signal": int(program.stop_signal),
            "grace_s": program.grace_s,
            "remove": str(program.remove_when_orphaned) if program.remove_when_orphaned else None,
        }
        with program.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, json.dumps(order)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **program.environment},
                start_new_session=True,  # Ctrl-C in a terminal is for us; we end the children in order
                pass_fds=program.inherited_fds,
            )
        assert self._guard.stdout is not None
        line = self._guard.stdout.readline()
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
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # the guard has ended, so the child has
                self._guard.stdin.write(b"stop\n")
        self._reap()

    def kill(self) -> None:
        """Kill it and all its descendants at once (SIGKILL), as a crash of the machine would."""
        if self.exit_status is None:
            guard.signal_tree(self.pid, signal.SIGKILL)
        self._reap()

    def pause(self) -> None:
        """Freeze it and all its descendants (SIGSTOP)."""
        guard.signal_tree(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it and all its descendants (SIGCONT)."""
        guard.signal_tree(self.pid, signal.SIGCONT)

    def _reap(self) -> None:
        self._guard.wait()
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def log_tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, indented, for an error message."""
    if not log.is_file():
        return f"    ({log} was not written)"
    tail = log.read_text("utf-8", errors="replace").splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in tail)
