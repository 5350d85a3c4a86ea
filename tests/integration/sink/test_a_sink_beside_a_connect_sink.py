"""P3: a sink of ours doesn't begin while a Connect sink keeps the view, whatever its own settings say."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Consumer

from sink.connect_group import require_no_second_sink
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.kafka.clients import admin
from wait_registry.settings.kafka import KafkaSettings


@pytest.mark.guarantee("P3.8")
def test_it_ends_while_a_connect_sinks_group_reads_its_wait_topic_and_begins_when_that_is_gone(
    prepared: SettingsFactory, names: Names, start_sink: StartSink
) -> None:
    settings = prepared({"sink.connect_group": names("group")})
    config = {"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": settings.sink.connect_group}
    with closing(Consumer(config)) as task:
        task.subscribe([settings.wait.topic])
        wait_until(lambda: task.poll(0.1) or task.assignment(), what="a task in the sink's group")
        refused = start_sink(settings, once=True).wait_ended()
        assert isinstance(refused, FencedError)
        assert f"reads the partitions 0, 1, 2, 3 of {settings.wait.topic}" in str(refused)
    assert start_sink(settings, once=True).wait_ended() is None


def test_a_group_of_that_name_that_reads_another_registrys_topic_keeps_nobody_back(
    topics: Topics, names: Names
) -> None:
    kafka, group = KafkaSettings(bootstrap_servers=topics.bootstrap), names("group")
    with closing(Consumer({"bootstrap.servers": topics.bootstrap, "group.id": group})) as task:
        task.subscribe([topics.create(names("elsewhere"), 1)])
        wait_until(lambda: task.poll(0.1) or task.assignment(), what="a task in the group")
        require_no_second_sink(admin(kafka), kafka, group, names("wait"))


def test_where_kafka_does_not_tell_the_setting_counts_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9", request_timeout_s=1)
    require_no_second_sink(admin(kafka), kafka, "group", "wait")
    assert "only sink.kind counts" in caplog.text
