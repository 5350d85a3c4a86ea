"""A failed record keeps its registration until its dead letter is safe; if that is refused, all stops (P1, P8)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.kafka.topics import topic_config
from wait_registry.settings.root import Settings


@pytest.mark.guarantee("P1.3", "P8.1")
@pytest.mark.fault("F17")
def test_a_record_with_a_refused_dead_letter_stays_registered(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    started, refusing = threading.Event(), threading.Event()

    def fails(record: Record) -> None:
        started.set()
        refusing.wait(60)
        raise ValueError("no such order")

    settings = processor_settings({"processor.handler": processors.handler(fails)}, 1)
    topics.produce(settings.processor.topics[0], [Outgoing(os.urandom(50_000), b"key")])
    running = processors.start(settings)
    assert started.wait(60)
    make_smaller(topics.admin, settings.dead_letter.topic, 1_000)
    refusing.set()

    with pytest.raises(PermanentError, match="writing the dead letter"):
        running.join()
    [story] = stories(topics.read(settings.wait.topic)).values()
    assert story.outcomes == [], "a tombstone would have ended the only copy that is left"
    assert topics.read(settings.dead_letter.topic) == []


def make_smaller(admin: AdminClient, topic: str, max_message_bytes: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(max_message_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(15)
    wait_until(
        lambda: topic_config(admin, topic)["max.message.bytes"] == str(max_message_bytes), 15, "the smaller limit"
    )
