"""The demo, interrupted: it leaves nothing running (played to its end: `make demo`, tests/acceptance)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil


def iter_until(lines: Iterable[str], wanted: str) -> Iterator[str]:
    for line in lines:
        yield line
        if wanted in line:
            return


def test_ctrl_c_takes_everything_down(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "wait_registry", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    with process.stdout:
        shown = "".join(iter_until(process.stdout, "Starting the sink and the sweeper"))
        children = psutil.Process(process.pid).children(recursive=True)
        assert {"java", "postgres"} <= {child.name() for child in children}, shown
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.wait(timeout=60) == 130, rest
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
