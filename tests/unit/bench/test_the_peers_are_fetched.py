"""Before it measures, `make bench` has the peers fetched by `make bench-peers`, which ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness.peers import fetch_peers
from bench.harness.process import ROOT
from tests.support.processes import gone
from tests.support.waiting import PATIENCE_S, wait_until
from wait_registry.errors import ConfigurationError

FETCHES = """
import pathlib, sys
from bench import __main__ as command
from bench.harness.peers import fetch_peers
command._take_signals()
fetch_peers(pathlib.Path(sys.argv[1]))
"""
WAITS = """
import os, pathlib, signal
pathlib.Path("id").write_text(f"{os.getpid()}.")
signal.pause()
"""


def makefile(folder: Path, text: str) -> Path:
    """Write it and return its folder."""
    (folder / "Makefile").write_text(text, "utf-8")
    return folder


def test_they_are_made(tmp_path: Path) -> None:
    fetch_peers(makefile(tmp_path, "bench-peers:\n\t@touch made\n"))
    assert (tmp_path / "made").exists()


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`make bench-peers` ended with status 2"):
        fetch_peers(makefile(tmp_path, "bench-peers:\n\t@exit 3\n"))


def test_without_make_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="saw no make"):
        fetch_peers(tmp_path)


def test_an_interruption_ends_what_fetches(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS, "utf-8")
    makefile(tmp_path, f"bench-peers:\n\t@{sys.executable} waits.py\n")
    command = [sys.executable, "-c", FETCHES, str(tmp_path)]
    written = tmp_path / "id"
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: written.exists() and written.read_text().endswith("."), what="what fetches")
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in said
    wait_until(lambda: gone(int(written.read_text().rstrip("."))), what="the end of what fetched")
