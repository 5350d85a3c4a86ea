"""The guard of one child process: when the parent is gone, however it went, the child goes too.

Run as a process of its own (`python -I guard.py ORDER`), it starts the child, writes its pid to standard output and
then watches the child and who its own parent is. The latter changes when the parent ends, even by SIGKILL, which no
handler in the parent could answer. SIGTERM asks the guard to stop the child. It imports nothing of this project, so
that it starts fast and works from any directory.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

PR_SET_PDEATHSIG = 1
POLL_S = 0.1


def process_tree(pid: int) -> list[psutil.Process]:
    """Return the process and all its descendants, itself first; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signal_tree(pid: int, number: int) -> None:
    """Send a signal to a process and all its descendants.

    The root is stopped first while the others are looked up: what is stopped can't start another child meanwhile.
    """
    if not process_tree(pid):
        return
    os.kill(pid, signal.SIGSTOP)
    tree = process_tree(pid)
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    if number not in (signal.SIGSTOP, signal.SIGKILL) and tree:
        os.kill(pid, signal.SIGCONT)


def main(order_text: str) -> int:
    """Start the child that the order describes, guard it, and return its exit status the way a shell does."""
    order = json.loads(order_text)
    told_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told_to_stop.append(number))
    child = _start(order)
    os.write(sys.stdout.fileno(), f"{child.pid}\n".encode())
    while child.poll() is None and not told_to_stop and os.getppid() == order["parent"]:
        with suppress(subprocess.TimeoutExpired):
            child.wait(POLL_S)
    if child.returncode is None:
        _end(child, order["stop_signal"], order["grace_s"])
    if os.getppid() != order["parent"] and (folder := order["remove_when_orphaned"]):
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # the other guard still has its part in there and will come by later
            Path(folder).parent.rmdir()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _start(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    account = order["account"] or {"uid": None, "gid": None}
    with Path(order["log"]).open("ab") as log:
        return subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=order["cwd"],
            preexec_fn=_die_with_parent,  # after the change of account, which would clear it
            user=account["uid"],
            group=account["gid"],
            extra_groups=[] if order["account"] else None,
        )


def _die_with_parent() -> None:
    # If this guard is itself killed, Linux ends the child; elsewhere nothing more can be done.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _end(child: subprocess.Popen[bytes], stop_signal: int, grace_s: float) -> None:
    for process in process_tree(child.pid):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)  # a paused process would never see the next signal
    child.send_signal(stop_signal)
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        signal_tree(child.pid, signal.SIGKILL)
        child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
