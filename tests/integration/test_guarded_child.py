"""A guarded child ends with its parent, whatever happens to either; the children here are small Python programs."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.processes import runs
from tests.support.waiting import wait_until
from waitreg.local.child import GuardedChild, Program

# Each child starts a child of its own, as Postgres does, and says so in its log.
SLEEPER = """
import signal, subprocess, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if "stubborn" not in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: (grandchild.kill(), sys.exit(0)))
print("started", flush=True)
time.sleep(600)
"""
PARENT = """
import sys
from pathlib import Path
from waitreg.local.child import GuardedChild, Program
folder, *arguments = sys.argv[1:]
own = Path(folder) / "own"
own.mkdir()
command = [sys.executable, "-c", sys.stdin.readline().encode().decode("unicode_escape"), *arguments]
child = GuardedChild(Program(command, Path(folder) / "log", own, grace_s=1, remove_when_orphaned=own))
print(child.pid, flush=True)
sys.stdin.read()
"""


def program(folder: Path, *arguments: str, grace_s: float = 30) -> Program:
    return Program([sys.executable, "-c", SLEEPER, *arguments], folder / "log", folder, grace_s=grace_s)


def wait_started(log: Path) -> None:
    wait_until(lambda: log.exists() and "started" in log.read_text(), 60, "the child's first word")


@pytest.fixture
def child(tmp_path: Path) -> Iterator[GuardedChild]:
    running = GuardedChild(program(tmp_path))
    wait_started(tmp_path / "log")
    yield running
    running.kill()


def tree(child: GuardedChild) -> list[psutil.Process]:
    root = psutil.Process(child.pid)
    return [root, *root.children(recursive=True)]


def test_stop_lets_the_child_end_in_order(child: GuardedChild) -> None:
    processes = tree(child)
    child.stop()
    assert child.exit_status == 0
    assert not any(map(runs, processes))


def test_a_child_that_ignores_the_request_is_killed_with_its_children(tmp_path: Path) -> None:
    child = GuardedChild(program(tmp_path, "stubborn", grace_s=0.2))
    wait_started(tmp_path / "log")
    processes = tree(child)
    assert len(processes) == 2
    child.stop()
    assert child.exit_status == 128 + signal.SIGKILL
    wait_until(lambda: not any(map(runs, processes)), 60, "the end of the grandchild")


def test_a_paused_child_can_be_stopped(child: GuardedChild) -> None:
    child.pause()
    child.stop()
    assert child.exit_status == 0


@pytest.mark.parametrize("arguments", [[], ["stubborn"]], ids=["obedient", "stubborn"])
@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_a_killed_parent_takes_descendants_and_files_along(tmp_path: Path, arguments: list[str], paused: bool) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path), *arguments]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(SLEEPER.replace("\n", "\\n") + "\n")
    parent.stdin.flush()
    root = psutil.Process(int(parent.stdout.readline()))
    wait_started(tmp_path / "log")
    guard = root.parent()
    assert guard is not None
    processes = [guard, root, *root.children(recursive=True)]
    assert len(processes) == 3
    if paused:
        for process in processes[1:]:
            process.suspend()
    parent.kill()
    parent.communicate()
    wait_until(lambda: not any(map(runs, processes)), 60, "the end of all")
    assert not (tmp_path / "own").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent in the kernel")
def test_a_killed_guard_takes_the_child_along(child: GuardedChild) -> None:
    process, grandchild = tree(child)
    guard = process.parent()
    assert guard is not None
    guard.kill()
    try:
        wait_until(lambda: not runs(process), 60, "the end of the child")
    finally:
        grandchild.kill()  # neither guard nor child is alive to do it


def test_a_program_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(ChildProcessError, match="no-such-program"):
        GuardedChild(Program(["/no-such-program"], tmp_path / "log", tmp_path))
