"""P8: what a sink refuses it refuses before Spark starts, and it is ready once batches are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink.service import SinkService
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError


def test_where_a_connect_sink_keeps_the_view_ours_does_not_start(settings_for: SettingsFactory) -> None:
    with pytest.raises(ConfigurationError, match=r"sink\.kind is connect"):
        SinkService(settings_for({"sink.kind": "connect"})).run()


def test_missing_topics_and_a_missing_schema_are_told_although_spark_could_not_be_started(
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
def test_not_before_the_first_batch_is_written_and_also_where_there_is_nothing_to_be_read(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1})
    WaitTopic(topics, settings.wait.topic).write(wait_record(new_id(), 0))
    with database.connect(settings) as other, other.transaction():
        other.execute("lock table wait in share mode")
        sink = start_sink(settings)
        blocked = "select pid from pg_locks where relation = 'wait'::regclass and not granted"
        wait_until(lambda: database.rows(settings, blocked), 90, "a first batch that waits for the lock")
        reasons = sink.service.telemetry.ready().reasons
        assert "wait stream: its first batch since the start isn't written yet" in reasons
    sink.wait_ready()
    assert database.rows(settings, "select count(*) from wait") == [(1,)]
