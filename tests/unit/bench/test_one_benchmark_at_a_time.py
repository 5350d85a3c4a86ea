"""Two benchmarks never run at once: they would measure each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness.lock import BusyError, only_one
from bench.harness.process import ROOT
from tests.support.waiting import wait_until

HOLDS = """
import pathlib, signal, sys
from bench.harness.lock import only_one
with only_one(pathlib.Path(sys.argv[1])):
    pathlib.Path(sys.argv[2]).touch()
    signal.pause()
"""


def test_the_second_one_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    lock, held = tmp_path / "lock", tmp_path / "held"
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(lock), str(held)], cwd=ROOT, env={"PYTHONPATH": "."})
    try:
        wait_until(held.exists, what="the other one's start")
        with (
            pytest.raises(BusyError, match=rf"another benchmark is running \(process {holder.pid} since 2"),
            only_one(lock),
        ):
            pytest.fail("both run")
    finally:
        holder.kill()
        holder.wait()
    with only_one(lock):  # what was killed holds nothing
        pass


def test_it_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), only_one(tmp_path / "lock"):
        raise KeyError
    with only_one(tmp_path / "lock"):
        pass
