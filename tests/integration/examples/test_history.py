"""The examples of histories and of a lost wait topic: what was done and what was open is answered after the fact."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sink.history.run import run_history
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.kafka_io import ReadRecord
from tests.support.module_of_file import load_module
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.unit.sink.batches import Row
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_record import ExpiryRule, LaterDelivery, WaitRecordEncoder
from wait_registry.settings.tree import Settings
from waitreg.local.environment import as_environment

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
        [sys.executable, "-m", "waitreg", "history", str(tmp_path / "history")],
        env={**inherited, **as_environment(settings)},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-4000:]
    assert json.loads(ended.stdout) == {"rows": 3, "without_registration": 1, "files": 2, "open": 0}


WAIT_ID = "01a1fd5e-6557-8324-a9e4-dd44916f69cf"
FIRST_DELIVERY = "01a1fd5e-6557-8324-a9e4-dd44916f69ce"
republish = load_module(Path(__file__).parents[3] / "examples" / "lost_wait_topic" / "republish.py")


@pytest.fixture
def settings_in_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Settings], None]:
    """Return what gives the script its settings, as a user's shell does."""

    def use(settings: Settings) -> None:
        monkeypatch.chdir(tmp_path)
        for name, value in as_environment(settings).items():
            monkeypatch.setenv(name, value)

    return use


def register(settings: Settings, original: Original) -> None:
    """Write an open registration into the table, as the sink does."""
    encoder = WaitRecordEncoder(settings.processor.group, "host-1", settings.dead_letter.topic, ExpiryRule("dlq", 3))
    headers = tuple(
        encoder.headers(original, WAIT_ID, 1_795_227_900_000, 1, LaterDelivery(idempotency_key=FIRST_DELIVERY))
    )
    with closing(HandFed(settings, settings.wait.topic)) as feeder:
        row = Row(WAIT_ID.encode(), original.value or b"", 1, 0, now_ms(), headers, settings.wait.topic)
        feeder.feed([row])


def test_registrations_of_a_lost_topic_are_published(
    prepared: Callable[..., Settings],
    topics: Topics,
    settings_in_environment: Callable[[Settings], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = prepared()
    topic = settings.processor.topics[0]
    original = Original(
        topic, 1, 7, 1_795_227_600_000, "create", b"\x00key", None, (("tenant", b"blue"), ("raw", None))
    )
    register(settings, original)
    settings_in_environment(settings)
    assert republish.main([f"original_topic = '{topic}'", "--to", topic, "--send"]) == 0
    assert "1 published, 0 refused" in capsys.readouterr().out
    (sent,) = topics.read(topic)
    assert (sent.key, sent.value, sent.headers[:2]) == (original.key, None, original.headers)
    assert (origin(sent), sent.text("WAIT_DELIVERY")) == ((topic, "1", "7"), "2")
    assert sent.text("WAIT_IDEMPOTENCY_KEY") == FIRST_DELIVERY


def test_records_beyond_a_queue_are_sent(settings_for: Callable[..., Settings], topics: Topics, names: Names) -> None:
    settings = settings_for()
    settings.kafka.librdkafka["queue.buffering.max.messages"] = "10"
    topic = topics.create(names("again"), 1)
    small = [republish.Outgoing(topic, str(number), None, str(number).encode(), []) for number in range(500)]
    sent = republish.Sent()
    large = republish.Outgoing(topic, "the large one", None, os.urandom(2_000_000), [])
    republish.publish(settings, [large, *small], sent)
    assert (sent.acknowledged, [place for place, _ in sent.refused]) == (500, ["the large one"])
    assert [record.value for record in topics.read(topic)] == [each.value for each in small]


def origin(letter: ReadRecord) -> tuple[str, str, str]:
    """Return topic, partition and offset of the first delivery."""
    return letter.text("ORIGINAL_TOPIC"), letter.text("ORIGINAL_PARTITION"), letter.text("ORIGINAL_OFFSET")
