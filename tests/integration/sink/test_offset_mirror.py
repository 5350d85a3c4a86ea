"""The sink logs offsets that Kafka refuses to mirror, once per topic, and that mirroring works again."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import UTC, datetime

import pytest

from sink.mirror import MirrorState, OffsetMirror
from sink.position import Position, TopicPartition
from tests.conftest import SettingsFactory
from tests.integration.sink.wait_topic import new_id
from tests.support.waiting import wait_until


def test_refused_offsets_are_logged(prepared: SettingsFactory, caplog: pytest.LogCaptureFixture) -> None:
    settings = prepared()
    caplog.set_level(logging.INFO, "sink.mirror")
    nowhere = TopicPartition(f"{settings.wait.topic}.nowhere", 0)

    def levels() -> list[int]:
        return [record.levelno for record in caplog.records if record.name == "sink.mirror"]

    with closing(OffsetMirror(settings.kafka, f"mirror-{new_id()}")) as mirror:

        def answers(expected: list[int]) -> bool:
            mirror.poll()
            return levels() == expected

        mirror.commit({nowhere: Position(0, datetime.now(UTC))})
        wait_until(lambda: answers([logging.WARNING]), 60, "the warning")
    assert f"{nowhere.topic} could not be mirrored" in caplog.text


def test_a_failure_is_logged_once_until_it_changes_or_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sink.mirror")
    state = MirrorState()
    for failure in (None, "away", "away", "refused", "refused", None, None, "away"):
        state.report("wait", failure)
        state.report("orders.dlq", None)
    assert [(record.levelname, record.getMessage().split()[-1]) for record in caplog.records] == [
        ("WARNING", "away"),
        ("WARNING", "refused"),
        ("INFO", "again"),
        ("WARNING", "away"),
    ]
