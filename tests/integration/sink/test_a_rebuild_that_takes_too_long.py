"""P3: a rebuild that compaction may have overtaken changes nothing, since it may have missed tombstones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sink.position import PositionExpired
from sink.rebuild.tables import rebuild
from tests.conftest import SettingsFactory
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETENTION_S = 1.0


@pytest.mark.guarantee("P3.21")
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rebuild_frozen_between_two_chunks_for_longer_than_tombstones_stay_changes_nothing(
    prepared: SettingsFactory, topics: Topics, database: Database, spark: SparkSession, dry_run: bool
) -> None:
    settings = prepared(
        {"wait.partitions": 1, "wait.delete_retention_ms": round(RETENTION_S * 1000), "sink.max_batch_records": 1}
    )
    log = WaitTopic(topics, settings.wait.topic)
    resolved, standing = new_id(), new_id()
    log.write(wait_record(resolved, 0), wait_record(standing, 0), tombstone(resolved, 0))

    def freeze(partition: int, done: int, total: int) -> None:
        if done == 1:
            until_s = time.monotonic() + RETENTION_S
            wait_until(lambda: time.monotonic() > until_s, 60, "the time after which tombstones go")

    with pytest.raises(PositionExpired, match="the rebuild has taken"):
        rebuild(settings, spark, dry_run=dry_run, progress=freeze)
    assert database.rows(settings, "select * from wait") == []
    assert {at for (at,) in database.rows(settings, "select next_offset from sink_progress")} <= {0}
