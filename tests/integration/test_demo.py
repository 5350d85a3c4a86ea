"""The demo, small: it ends with a kept reconciliation, and an interrupted one leaves nothing running."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from waitreg.demo.main import run_demo
from waitreg.demo.plan import SMALL
from waitreg.demo.screen import Screen


@pytest.mark.timeout(240)
def test_a_small_demo_keeps_every_promise() -> None:
    output = io.StringIO()
    exit_code = run_demo(plan=SMALL, screen=Screen(Console(file=output, width=140)))
    text = output.getvalue()
    assert exit_code == 0
    assert "every promise was kept" in text
    assert "killed (SIGKILL)" in text
    assert "records stand in Postgres" in text
    published = SMALL.records("batch", 10) + SMALL.records("registry", 10) + SMALL.crash_records
    assert f"published {published} = done " in text


def iter_until(lines: Iterable[str], wanted: str) -> Iterator[str]:
    for line in lines:
        yield line
        if wanted in line:
            return


def test_ctrl_c_takes_everything_down(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "waitreg", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    with process.stdout:
        shown = "".join(iter_until(process.stdout, "Sink and sweeper start"))
        children = psutil.Process(process.pid).children(recursive=True)
        assert {"java", "postgres"} <= {child.name() for child in children}, shown
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.wait(timeout=60) == 130, rest
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
