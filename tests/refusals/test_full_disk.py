"""Without disk space for its scratch files or for Postgres, the sink waits, reports why, and continues with space.

Both need a small file system of their own, which only root may mount: elsewhere they are skipped, and say so.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.integration.sink.conftest import StartSink
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.own_postgres import own_postgres, reachable
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

BLOCK = 65_536
HOUR_MS = 3_600_000


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[Path]:
    """Mount a file system of this size; skips the test where that isn't allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a full disk can only be had by root with the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on a disk and return the file that takes it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * BLOCK) == BLOCK:
                pass
            while file.write(b"x"):
                pass
        except OSError:
            pass
    return ballast


def registered(at: Scenario, first: int, count: int) -> set[str]:
    records = [
        at.wait_record(number, expires_in_ms=HOUR_MS, value=b"v" * 2_000) for number in range(first, first + count)
    ]
    return {item.wait_id for item in at.register(records)}


def in_view(settings: Settings, url: str) -> set[str]:
    try:
        with Database(url).connect(settings) as connection:
            return {row[0] for row in connection.execute("select wait_expiration_uuid from wait")}
    except psycopg.OperationalError:
        return set()


@pytest.mark.fault("F99")
@pytest.mark.timeout(400)
def test_no_room_in_postgres_is_waited_out_and_the_view_is_exact_again(
    topics: Topics, start_sink: StartSink, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with small_disk(reachable(tmp_path) / "disk", 160) as disk, own_postgres(disk) as server:
        overrides = {
            "wait.partitions": 1,
            "wait.skew_allowance_s": 0,
            "sink.restart_backoff_max_s": 1,
            "sink.poll_interval_s": 0.2,
        }
        at = Scenario.made(topics, Database(server.url), overrides)
        settings = at.settings
        sink = start_sink(settings)
        sink.wait_ready()
        known = registered(at, 0, 3)
        wait_until(lambda: in_view(settings, server.url) == known, 60, "the first rows")
        ballast = fill(disk)
        known |= registered(at, 3, 2_000)
        wait_until(lambda: "No space left" in caplog.text or not server.running, 90, "a line that says why")
        assert not sink.ended
        ballast.unlink()
        server.start()  # Postgres itself ends where it can't write its log
        wait_until(lambda: in_view(settings, server.url) == known, 90, "the rows of meanwhile")
        sink.stop()
