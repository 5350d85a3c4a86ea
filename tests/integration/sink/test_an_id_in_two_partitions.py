"""P6, P8: an id that other producers have put into two partitions stops no sink, and each partition's story counts."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.topics import Topics

ROWS = "select wait_expiration_uuid, wait_partition, wait_offset from wait"


@pytest.mark.guarantee("P6.12")
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in batches of their own"])
def test_what_stands_in_a_partition_is_shown_whatever_another_one_says_of_its_id(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink, together: bool
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1})
    log, twice, strayed = WaitTopic(topics, settings.wait.topic), new_id(), new_id()

    def sink() -> None:
        assert start_sink(settings, once=True).wait_ended() is None

    log.write(wait_record(twice, 0), wait_record(strayed, 0))
    if not together:
        sink()
    [_, (_, offset)] = log.write(tombstone(strayed, 1), wait_record(twice, 1))
    sink()
    [(strayed_at, strayed_offset)] = [row[1:] for row in database.rows(settings, ROWS) if row[0] == strayed]
    assert (strayed_at, strayed_offset) == (0, 1), "a tombstone resolves what stands in its own partition"
    assert (twice, 1, offset) in database.rows(settings, ROWS), "one row an id, and no error"

    log.write(tombstone(twice, 1), tombstone(strayed, 0))
    sink()
    assert database.rows(settings, ROWS) == []
    assert database.rows(settings, "select * from quarantine") == []
