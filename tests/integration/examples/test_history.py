"""examples/history: what happened on a day, and whether a record was done, are answered after compaction."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.topics import Topics
from wait_registry.local.environment import as_environment
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(400)
FILE = Path(__file__).parents[3] / "examples" / "history" / "questions.py"


def test_the_questions_are_answered(
    settings_for: Callable[..., Settings],
    topics: Topics,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = settings_for({"wait.partitions": 1})
    topics.create_own(settings, 1)
    order, other = new_id(), new_id()
    WaitTopic(topics, settings.wait.topic).write(
        wait_record(order, 0, key=b"4711"),
        wait_record(other, 0, key=b"4712"),
        tombstone(order, 0, Outcome.EXPIRED),
        tombstone(other, 0),
        tombstone(order, 0),
    )
    command(settings, tmp_path / "history")

    today = f"{datetime.now(UTC):%Y-%m-%d}"
    monkeypatch.setattr(sys, "argv", ["questions.py", str(tmp_path / "history"), "--day", today, "--key", "4711"])
    runpy.run_path(str(FILE), run_name="__main__")
    answer = capsys.readouterr().out
    assert "consumer_group: billing, outcome: expired, records: 1" in answer
    assert "consumer_group: billing, outcome: done, records: 1" in answer
    asked = answer.partition("key 4711: every delivery\n")[2].splitlines()
    assert [line.split("outcome: ")[1].split(",")[0] for line in asked] == ["expired", "done"]
    assert all(line.startswith("  topic: orders, partition: 3, offset: 41, delivery: 1, ") for line in asked)


def command(settings: Settings, directory: Path) -> None:
    """Run `waitreg history` as a user does, in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WAITREG_")}
    ended = subprocess.run(
        [sys.executable, "-m", "wait_registry", "history", str(directory)],
        env={**inherited, **as_environment(settings)},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-4000:]
    assert json.loads(ended.stdout) == {"rows": 3, "without_registration": 1, "files": 2, "open": 0}
