"""P6, P8: a sink whose JVM dies ends with a reason, and the next one goes on where Postgres says."""

from __future__ import annotations

import psutil
import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.test_the_view_is_the_logs_truth import view_of
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.processes import Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until


@pytest.mark.guarantee("P8.15")
@pytest.mark.fault("F56")
def test_it_ends_loudly_and_the_next_start_continues(
    prepared: SettingsFactory, topics: Topics, database: Database, services: Services, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2, "sink.restart_backoff_max_s": 1})
    log, ids = WaitTopic(topics, settings.wait.topic), [new_id() for _ in range(8)]
    log.write(*[wait_record(wait_id, at % 4) for at, wait_id in enumerate(ids)])
    service = services.start("sink", settings).wait_ready()
    wait_until(lambda: view_of(database, settings) == log.view, what="the view")

    [java] = [child for child in psutil.Process(service.pid).children() if child.name() == "java"]
    java.kill()
    assert service.wait() == 1
    assert "Spark's JVM has ended" in service.log.read_text()

    log.write(*[tombstone(wait_id, at % 4) for at, wait_id in enumerate(ids[:5])], wait_record(new_id(), 1))
    assert start_sink(settings, once=True).wait_ended() is None
    assert view_of(database, settings) == log.view
    assert database.rows(settings, "select * from late_outcome") == [], "nothing was read twice"
