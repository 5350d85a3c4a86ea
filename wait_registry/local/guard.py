"""The guard of one child process: when the parent is gone, however it went, the child goes too.

Run as a process of its own (`python -I guard.py ORDER`), it starts the child, writes its pid to standard output and
then watches three things: the child, a pipe from the parent (standard input), and who its own parent is. The pipe
ends when the parent does, even by SIGKILL, which no handler in the parent could answer. It imports nothing of this
project, so that it starts fast and works from any directory.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, TypeAlias

import psutil

Reason: TypeAlias = Literal["exited", "stop", "orphaned"]

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
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue
    if number not in (signal.SIGSTOP, signal.SIGKILL) and tree:
        os.kill(pid, signal.SIGCONT)


def main(order_text: str) -> int:
    """Start the child that the order describes, guard it, and return its exit status the way a shell does."""
    order = json.loads(order_text)
    parent = os.getppid()
    told_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told_to_stop.append(number))
    child = _start(order)
    os.write(sys.stdout.fileno(), f"{child.pid}\n".encode())
    reason = _watch(child, parent, told_to_stop)
    if reason != "exited":
        _end(child, order["stop_signal"], order["grace_s"])
    if reason == "orphaned" and order["remove"]:
        shutil.rmtree(order["remove"], ignore_errors=True)
        _remove_if_empty(Path(order["remove"]).parent)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _start(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    account: dict[str, Any] = {}
    if order["account"]:
        uid, gid = order["account"]
        account = {"user": uid, "group": gid, "extra_groups": []}
    with Path(order["log"]).open("ab") as log:
        return subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=order["cwd"],
            preexec_fn=_die_with_parent,  # after the change of account, which would clear it
            **account,
        )


def _die_with_parent() -> None:
    # If this guard is itself killed, Linux ends the child; elsewhere nothing more can be done.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _watch(child: subprocess.Popen[bytes], parent: int, told_to_stop: list[int]) -> Reason:
    while child.poll() is None:
        if told_to_stop:
            return "stop"
        # A process forked off the parent may hold the pipe's other end open: hence the look at the parent itself.
        if os.getppid() != parent:
            return "orphaned"
        readable, _, _ = select.select([sys.stdin], [], [], POLL_S)
        if readable:
            return "stop" if os.read(sys.stdin.fileno(), 64) else "orphaned"
    return "exited"


def _end(child: subprocess.Popen[bytes], stop_signal: int, grace_s: float) -> None:
    for process in process_tree(child.pid):
        try:
            process.send_signal(signal.SIGCONT)  # a paused process would never see the next signal
        except psutil.NoSuchProcess:
            continue
    child.send_signal(stop_signal)
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        signal_tree(child.pid, signal.SIGKILL)
        child.wait()


def _remove_if_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        return  # the other guard still has its part in there and will come by later


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
