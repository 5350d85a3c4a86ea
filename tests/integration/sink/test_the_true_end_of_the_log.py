"""P1, P6: aborted records change nothing, and transaction markers at the log's end are passed like any record."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.test_the_view_is_the_logs_truth import (
    high_watermarks,
    positions_of,
    transaction,
    view_of,
)
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics


@pytest.mark.guarantee("P1.10", "P6.5")
def test_an_aborted_tombstone_resolves_nothing_and_the_position_is_the_logs_end(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2})
    log, (resolved, standing) = WaitTopic(topics, settings.wait.topic), (new_id(), new_id())
    log.write(wait_record(resolved, 0), wait_record(standing, 1))
    with transaction(topics, log.name, commit=True) as producer:
        producer.produce(log.name, key=resolved.encode(), value=None, partition=0)
        log.view.pop(resolved)
    with transaction(topics, log.name, commit=False) as producer:
        producer.produce(log.name, key=standing.encode(), value=None, partition=1)

    assert start_sink(settings, once=True).wait_ended() is None

    assert view_of(database, settings) == log.view
    assert positions_of(database, settings, log.name) == high_watermarks(topics, log.name, 4)
