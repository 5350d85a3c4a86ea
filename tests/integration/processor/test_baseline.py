"""The demo's baseline calls the handler for every record, commits after the batch, and ends on SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.committed_offsets import committed
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.demo.environment import as_environment
from wait_registry.settings.root import Settings


def test_baseline_calls_commits_and_stops(
    processor_settings: Callable[..., Settings], topics: Topics, tmp_path: Path
) -> None:
    handler = "tests.integration.processor.deadly_handlers:slow"
    settings = processor_settings({"processor.handler": handler, "processor.max_in_flight": 10}, 1)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(25)])
    calls = tmp_path / "calls"
    baseline = subprocess.Popen(
        [sys.executable, "-m", "wait_registry.demo.baseline"],
        env={**os.environ, **as_environment(settings), "CALLS": str(calls)},
    )
    try:
        wait_until(lambda: committed(topics.bootstrap, group, topic, 1) == [25], 60, "the commit of all records")
        baseline.send_signal(signal.SIGTERM)
        assert baseline.wait(30) == 0
    finally:
        baseline.kill()
    assert sorted(int(line.split()[1]) for line in calls.read_text().splitlines()) == list(range(25))
