"""Whoever interrupts `make mutants`, by Ctrl-C or SIGTERM, leaves no test running, nor what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.scratch_copy import ROOT
from tests.support.processes import gone
from tests.support.waiting import PATIENCE_S, wait_until

# Two mutants of which nothing is true but that their test never ends, on no stack.
INTERRUPTED = """
import pathlib, sys, tempfile
from contextlib import contextmanager
from types import SimpleNamespace
from tests.mutants import run, trial
from tests.mutants.mutant import Mutant

folder, *arguments = sys.argv[1:]

@contextmanager
def scratch_copy():
    with tempfile.TemporaryDirectory(dir=folder) as copy:
        for name, text in CONTENTS.items():
            (pathlib.Path(copy) / name).write_text(text)
        yield pathlib.Path(copy)

@contextmanager
def nowhere(**settings):
    yield SimpleNamespace(bootstrap_servers="kafka:9092", postgres_url="")
    (pathlib.Path(folder) / "stack-ended").touch()

CONTENTS = {
    "conftest.py": "import hypothesis; hypothesis.settings.register_profile('verdict')",
    "code.txt": "old",
    "test_waits.py": '''
import os, pathlib, signal, subprocess, sys

def test_waits():
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    written = pathlib.Path(os.environ["FOLDER"]) / f"{os.getpid()}.new"
    written.write_text(f"{os.getpid()} {child.pid}")
    written.rename(written.with_suffix(".ids"))
    signal.pause()
''',
}
run.load_mutants = lambda: [Mutant(n, "P1", ".", "code.txt", "old", n, "test_waits.py::test_waits") for n in "abcdef"]
run.scratch_copy = trial.scratch_copy = scratch_copy
run.EmbeddedStack = nowhere
sys.exit(run.main(arguments))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("arguments", "at_once"), [([], 1), (["--no-baseline", "--jobs", "2"], 2)], ids=["unchanged", "with mutants"]
)
def test_a_signal_ends_it_with_130_and_all_that_it_started(
    arguments: list[str], at_once: int, number: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path), *arguments]
    environment = {"PYTHONPATH": str(ROOT), "FOLDER": str(tmp_path)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)

    def started() -> list[int]:
        return [int(text) for file in tmp_path.glob("*.ids") for text in file.read_text().split()]

    try:
        wait_until(lambda: len(started()) == 2 * at_once, what="tests that wait")
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, said) == (130, "interrupted\n")
        wait_until(lambda: all(gone(pid) for pid in started()), what="the end of every test")
        assert len(started()) == 2 * at_once, "no other test was begun"
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [], "the copies are gone"
    finally:
        process.kill()
        for pid in started():
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
