"""Partitions that are added to a consumed topic are found and logged soon."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from processor.intake.broker_watch import IDENTITY_EVERY_S
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.group_config import tuning
from wait_registry.settings.root import Settings


def test_added_partitions_are_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    counts = iter([5, 8, 8])
    described = lambda *_: {"orders": SimpleNamespace(topic_id="1", partitions=[None] * next(counts))}  # noqa: E731
    monkeypatch.setattr("processor.intake.consumed_topics.describe_existing", described)
    consumed, admin = ConsumedTopics("group", {"orders": "1"}), SimpleNamespace()
    for _ in range(3):
        asked: Any = admin
        consumed.recreated(asked)
    assert [line for line in caplog.messages if "partitions" in line] == [
        "topic orders has 8 partitions now, it had 5. The group consumes the new ones from their beginning, within a "
        "minute"
    ]


def test_the_client_finds_them_as_often_as_the_topics_are_compared() -> None:
    assert tuning(Settings())["topic.metadata.refresh.interval.ms"] <= IDENTITY_EVERY_S * 1000
