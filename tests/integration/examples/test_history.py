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

from sink.history.run import run_history
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.topics import Topics
from wait_registry.local.environment import as_environment
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(700)
FILE = Path(__file__).parents[3] / "examples" / "history" / "questions.py"


@pytest.fixture
def settings(settings_for: Callable[..., Settings], topics: Topics) -> Settings:
    """Settings of a wait topic with two records that were settled, one of them by the sweeper and then all the same."""
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
    return settings


def test_the_questions_are_answered(
    settings: Settings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_history(settings, tmp_path, spark)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    monkeypatch.setattr(sys, "argv", ["questions.py", str(tmp_path), "--day", today, "--key", "4711"])
    runpy.run_path(str(FILE), run_name="__main__")
    answer = capsys.readouterr().out
    assert "consumer_group: billing, outcome: expired, records: 1" in answer
    assert "consumer_group: billing, outcome: done, records: 1" in answer
    asked = answer.partition("key 4711: every delivery\n")[2].splitlines()
    assert [line.split("outcome: ")[1].split(",")[0] for line in asked] == ["expired", "done"]
    assert all(line.startswith("  topic: orders, partition: 3, offset: 41, delivery: 1, ") for line in asked)


def test_the_command_prints_what_it_added(settings: Settings, tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WAITREG_")}
    ended = subprocess.run(
        [sys.executable, "-m", "wait_registry", "history", str(tmp_path / "history")],
        env={**inherited, **as_environment(settings)},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-4000:]
    assert json.loads(ended.stdout) == {"rows": 3, "without_registration": 1, "files": 2, "open": 0}
