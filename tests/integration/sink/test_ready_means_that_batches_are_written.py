"""P8: a sink says that it is ready when each of its streams has written a batch since it was started, not before."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until


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
