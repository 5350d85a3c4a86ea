"""A group whose offsets expired begins at the beginning, as a new one does; its start and doctor say it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.integration.doctor.findings import look
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory, accepts
from tests.support.waiting import wait_until
from wait_registry.diagnosis import Severity
from wait_registry.handler import Record, TransientError

LOST = "its offsets expired or were deleted"


async def fails_once(record: Record) -> None:
    if record.delivery == 1:
        raise TransientError("not yet")


def lose_offsets(at: ProcessorScenario) -> None:
    """Delete the group, as the broker does with the offsets of an empty one after offsets.retention.minutes."""
    admin = AdminClient({"bootstrap.servers": at.topics.bootstrap})
    admin.delete_consumer_groups([at.group])[at.group].result(60)


@pytest.mark.parametrize(
    ("handler", "own", "sign"),
    [
        (accepts, {}, "waitreg.wait has registrations of it"),
        (
            fails_once,
            {"registration": "off", "max_attempts": 1, "others": {"processor.retry.delays": ("1s",)}},
            ".retry.1s has had records",
        ),
    ],
)
def test_a_group_that_lost_its_offsets_is_warned_of(
    handler: Any,
    own: dict[str, Any],
    sign: str,
    processor_scenario: ScenarioFactory,
    caplog: pytest.LogCaptureFixture,
) -> None:
    at = processor_scenario(handler, 2, **own)
    at.produce_to_each(3)
    assert look(at.settings, "processor").standing("group.offsets") is Severity.WARNING
    at.run_once()
    assert LOST not in caplog.text, "a new group"
    lose_offsets(at)
    [line] = [line for line in look(at.settings, "processor").of("group.offsets") if LOST in line.message]
    assert line.severity is Severity.WARNING
    at.run_once()
    [said] = [line for line in caplog.messages if LOST in line]
    for text in (line.message, said):
        assert f"{at.topic}[0], {at.topic}[1] begin at the beginning, and up to 6 records are handled again" in text
        assert sign.replace("waitreg.wait", at.settings.wait.topic) in text
    assert "waitreg rewind" in said


def test_added_partitions_are_no_lost_offsets(
    processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = processor_scenario(partitions=1)
    at.produce_to_each(2)
    at.run_once()
    admin = AdminClient({"bootstrap.servers": at.topics.bootstrap})
    admin.create_partitions([NewPartitions(at.topic, 2)])[at.topic].result(60)
    wait_until(lambda: len(admin.list_topics(at.topic).topics[at.topic].partitions) == 2, what="the new partition")
    at.produce([b"more"])
    at.run_once()
    assert LOST not in caplog.text
