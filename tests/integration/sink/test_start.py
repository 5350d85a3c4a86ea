"""P3, P4, P6, P8: one sink writes at a time; what one refuses before Spark starts, and when it is ready."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sink.advisory_lock import try_lock, wait_for_lock
from sink.connect_group import require_no_second_sink
from sink.mirror import MirrorState, OffsetMirror
from sink.position import Position, TopicPartition
from sink.service import SinkService
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.kafka_io import group_member
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, FencedError
from wait_registry.kafka.clients import admin
from wait_registry.postgres.connection import connect
from wait_registry.settings.kafka import KafkaSettings


def test_missing_topics_and_schema_are_reported_before_spark_starts(
    settings_for: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = settings_for({"spark.jars_dir": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="waitreg db migrate"):
        SinkService(settings).run()
    database.install(settings)
    with pytest.raises(ConfigurationError, match="waitreg topics create"):
        SinkService(settings).run()
    topics.create_own(settings)
    with pytest.raises(ConfigurationError, match=r"\.jar|jars"):
        SinkService(settings).run()


@pytest.mark.guarantee("P8.18")
def test_a_sink_is_ready_once_its_first_batch_is_written(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario()
    at.log.write(wait_record(new_id(), 0))
    with at.database.connect(at.settings) as other, other.transaction():
        other.execute("lock table wait in share mode")
        sink = at.start()
        blocked = "select pid from pg_locks where relation = 'wait'::regclass and not granted"
        wait_until(lambda: at.rows(blocked), 90, "a first batch that waits for the lock")
        reasons = sink.service.telemetry.ready().reasons
        assert "wait stream: its first batch since the start isn't written yet" in reasons
    sink.wait_ready()
    assert at.is_exact()


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


QUICK = {"sink.idle_progress_s": 1}


@pytest.mark.guarantee("P6.7")
def test_the_lock_has_one_holder_until_its_session_ends(prepared: SettingsFactory) -> None:
    settings = prepared()
    first, second, other = (connect(settings.postgres, autocommit=True, application_name="test") for _ in range(3))
    with closing(second), closing(other):
        topic = settings.wait.topic
        assert try_lock(first, topic)
        assert not try_lock(second, topic)
        assert try_lock(other, f"{topic}.other"), "another topic, another lock"
        assert wait_for_lock(second, topic, threading.Event(), waiting=first.close)


@pytest.mark.fault("F58")
def test_a_standby_takes_over_and_a_moved_position_stops_it(
    sink_scenario: SinkScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sink.service")
    at, ids = sink_scenario(QUICK), [new_id() for _ in range(8)]
    at.log.write(*[wait_record(wait_id, number % 4) for number, wait_id in enumerate(ids)])
    first = at.start().wait_ready()
    second = at.start()
    wait_until(lambda: second.service.telemetry.ready().reasons == ("standby",), 60, "the second sink as a standby")
    assert second.service.telemetry.live().ok
    at.wait_exact()
    assert caplog.text.count("waiting as a standby") == 1
    first.stop()
    at.log.write(*[tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids[:5])])
    second.wait_ready()
    at.wait_exact("of the second sink")
    # As a zombie would have it: another one has moved the position in the meantime.
    at.execute("update sink_progress set next_offset = next_offset + 1 where partition = 2")
    assert isinstance(second.wait_ended(), FencedError)
    assert at.is_exact()


@pytest.mark.fault("F62")
def test_a_recreated_wait_topic_stops_the_sink_at_once_and_at_its_start(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario(QUICK)
    running = at.start().wait_ready()
    at.topics.delete(at.settings.wait.topic)
    at.topics.create_own(at.settings)
    assert isinstance(running.wait_ended(), ConfigurationError)
    assert "recreated" in str(running.error)
    assert isinstance(at.start().wait_ended(), ConfigurationError)


@pytest.mark.guarantee("P3.8")
def test_no_sink_runs_while_a_connect_sink_reads_its_topic(sink_scenario: SinkScenarioFactory, names: Names) -> None:
    at = sink_scenario({"sink.connect_group": names("group")})
    with closing(group_member(at.topics.bootstrap, at.settings.sink.connect_group, [at.log.name], "classic")) as task:
        wait_until(lambda: task.poll(0.1) or task.assignment(), what="a task in the sink's group")
        refused = at.start_sink(at.settings, once=True).wait_ended()
        assert isinstance(refused, FencedError)
        assert f"reads the partitions 0, 1, 2, 3 of {at.log.name}" in str(refused)
    at.drain()


def test_a_group_of_that_name_may_read_another_registrys_topic(topics: Topics, names: Names) -> None:
    kafka, group = KafkaSettings(bootstrap_servers=topics.bootstrap), names("group")
    with closing(group_member(topics.bootstrap, group, [topics.create(names("elsewhere"), 1)], "classic")) as task:
        wait_until(lambda: task.poll(0.1) or task.assignment(), what="a task in the group")
        require_no_second_sink(admin(kafka), kafka, group, names("wait"))
