"""Run commands one after another; print how long each phase took, and the CPU seconds of all their processes.

    python3 setup/phases.py PHASE COMMAND [PHASE COMMAND ...]

The times of a phase add up. The status is that of the first command that failed, which ends the run. On Linux, this
process adopts the processes that a command abandons, counts them too, and fails if one still runs ten seconds later.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
LIMIT_S = 10.0


def main(arguments: list[str]) -> int:
    if not arguments or len(arguments) % 2:
        print(__doc__, file=sys.stderr)
        return 2
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The command gets Ctrl-C too, and ends by itself.
    signal.signal(signal.SIGINT, lambda *_: None)
    seconds: dict[str, float] = {}
    status = 0
    for phase, command in zip(arguments[::2], arguments[1::2], strict=True):
        began = time.monotonic()
        status = _run(command)
        running = _still_running()
        seconds[phase] = seconds.get(phase, 0.0) + time.monotonic() - began
        if running:
            print(f"{phase}: these processes still run {LIMIT_S:.0f} s after the end:", *running, sep="\n  ")
            status = status or 1
        if status:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = ", ".join(f"{phase} {taken:.0f} s" for phase, taken in seconds.items())
    print(f"{times}; {used.ru_utime + used.ru_stime:.0f} CPU seconds")
    return status


def _run(command: str) -> int:
    """Run a command, reap what it abandons meanwhile, and return its exit status."""
    process = subprocess.Popen(["sh", "-c", command])
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return abs(process.returncode)


def _still_running() -> list[str]:
    """Reap adopted processes until none is left or the time is over, and return the command lines of the others."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if pid == 0 and time.monotonic() > deadline:
            break
        if pid == 0:
            time.sleep(0.05)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text("utf-8").split()
    return [Path("/proc", child, "cmdline").read_bytes().replace(b"\0", b" ").decode() for child in children]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
