"""P3, P4, P6: one sink writes at a time: lock, standby, moved positions, recreated topics, Connect sinks."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer

from sink.advisory_lock import sink_lock_key, try_lock, wait_for_lock
from sink.connect_group import require_no_second_sink
from sink.position import PositionExpired
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, wait_record
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, FencedError
from wait_registry.kafka.clients import admin
from wait_registry.postgres.connection import connect
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {"sink.poll_interval_s": 0.2, "sink.idle_progress_s": 1}


def execute(database: Database, settings: Settings, statement: str, *parameters: Any) -> None:
    with database.connect(settings) as connection:
        connection.execute(statement.encode(), parameters or None)


@pytest.mark.fault("F58")
def test_a_second_sink_stands_by_and_takes_over_and_a_moved_position_stops_it(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared(QUICK)
    log = WaitTopic(topics, settings.wait.topic)
    ids = [new_id() for _ in range(8)]
    log.write(*[wait_record(wait_id, at % 4) for at, wait_id in enumerate(ids)])
    first = start_sink(settings).wait_ready()
    second = start_sink(settings)
    wait_until(lambda: second.service.telemetry.ready().reasons == ("standby",), 60, "the second sink's standing by")
    assert second.service.telemetry.live().ok
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows")

    first.stop()
    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids[:5])])
    second.wait_ready()
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows of the second sink")

    # As a zombie would have it: another one has moved the position in the meantime.
    execute(database, settings, "update sink_progress set next_offset = next_offset + 1 where partition = 2")
    assert isinstance(second.wait_ended(), FencedError)
    assert rows_of(database, settings) == log.rows


@pytest.mark.guarantee("P6.8")
@pytest.mark.fault("F94")
def test_a_restored_postgres_is_caught_up_exactly(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared(QUICK)
    log = WaitTopic(topics, settings.wait.topic)
    ids = [new_id() for _ in range(12)]
    log.write(*[wait_record(wait_id, at % 4) for at, wait_id in enumerate(ids)])
    start_sink(settings, once=True).wait_ended()
    execute(
        database,
        settings,
        "create table kept_wait as table wait; create table kept_progress as table sink_progress",
    )
    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids[:6])], wait_record(new_id(), 1))
    start_sink(settings, once=True).wait_ended()
    assert rows_of(database, settings) == log.rows
    restore = (
        "truncate wait, sink_progress; insert into wait table kept_wait; insert into sink_progress table kept_progress"
    )
    execute(database, settings, restore)
    log.write(tombstone(ids[7], 3))
    # Nothing but Postgres says where to begin.
    assert start_sink(settings, once=True).wait_ended() is None
    assert rows_of(database, settings) == log.rows


@pytest.mark.fault("F60")
def test_an_old_position_is_refused_then_rebuilt_then_fresh(
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    start_sink: StartSink,
    spark: SparkSession,
) -> None:
    from sink.rebuild.tables import rebuild

    settings = prepared({**QUICK, "sink.max_batch_records": 7})
    log = WaitTopic(topics, settings.wait.topic)
    ids = [new_id() for _ in range(40)]
    log.write(*[wait_record(wait_id, at % 4, value=b"%d" % at) for at, wait_id in enumerate(ids)])
    running = start_sink(settings).wait_ready()
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows")
    with pytest.raises(FencedError, match="a sink is running"):
        rebuild(settings, spark)
    running.stop()

    # Away for more than half of 72 h: tombstones may be gone that would have been read.
    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids) if at % 3], wait_record(ids[0], 0))
    execute(database, settings, "update sink_progress set position_time = now() - interval '37 hours'")
    execute(database, settings, "update wait set body = 'changed' where wait_expiration_uuid = %s", ids[3])
    execute(database, settings, "delete from wait where wait_expiration_uuid = %s", ids[6])
    before = rows_of(database, settings)
    refused = start_sink(settings)
    assert isinstance(refused.wait_ended(), PositionExpired)
    assert "waitreg rebuild" in str(refused.error)
    assert rows_of(database, settings) == before

    told = rebuild(settings, spark, dry_run=True)
    assert rows_of(database, settings) == before
    done = rebuild(settings, spark)
    assert done.partitions == told.partitions
    orphans = sum(1 for at in range(40) if at % 3)
    assert (sum(p.missing for p in done.partitions), sum(p.different for p in done.partitions)) == (1, 2)
    assert (sum(p.orphans for p in done.partitions), sum(p.rows for p in done.partitions)) == (orphans, 40 - orphans)
    assert rows_of(database, settings) == log.rows
    assert database.rows(settings, "select body from wait where wait_expiration_uuid = %s", ids[3]) == [(b"3",)]
    assert rebuild(settings, spark, dry_run=True).changed == 0

    log.write(tombstone(ids[3], 3))
    start_sink(settings).wait_ready()
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows after the rebuild")


def test_an_old_position_at_the_logs_end_is_no_reason_to_stop(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared(QUICK)
    start_sink(settings, once=True).wait_ended()
    execute(database, settings, "update sink_progress set position_time = now() - interval '37 hours'")
    assert start_sink(settings, once=True).wait_ended() is None
    query = "select count(*) from sink_progress where position_time < now() - interval '1 hour'"
    assert database.rows(settings, query) == [(0,)]


@pytest.mark.fault("F62")
def test_a_wait_topic_made_anew_stops_the_sink_while_it_runs_and_at_its_start(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared(QUICK)
    running = start_sink(settings).wait_ready()
    topics.delete(settings.wait.topic)
    topics.create_own(settings)
    assert isinstance(running.wait_ended(), ConfigurationError)
    assert "recreated" in str(running.error)
    again = start_sink(settings)
    assert isinstance(again.wait_ended(), ConfigurationError)


@pytest.mark.guarantee("P6.7")
def test_the_lock_has_one_holder_until_its_session_ends(prepared: SettingsFactory) -> None:
    settings = prepared()
    first, second, other = (connect(settings.postgres, autocommit=True, application_name="test") for _ in range(3))
    with closing(second), closing(other):
        key = sink_lock_key(first, settings.wait.topic)
        assert try_lock(first, key)
        assert not try_lock(second, key)
        assert try_lock(other, sink_lock_key(other, f"{settings.wait.topic}.other")), "another topic, another lock"

        assert wait_for_lock(second, key, threading.Event(), waiting=first.close)


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
