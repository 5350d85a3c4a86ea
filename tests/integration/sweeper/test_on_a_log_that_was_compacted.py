"""On a log that the broker has compacted, sink, rebuild and sweeper find exactly what stands in it (P3, P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.rebuild.tables import rebuild
from sink.service import SinkService
from sweeper.result import RowOutcome
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Segments are closed and cleaned at once, so that the broker's cleaner, which looks every 15 s, has its work to do.
COMPACTED_SOON = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "min.compaction.lag.ms": "0"}


def offsets(at: Scenario) -> list[int]:
    return [record.offset for record in at.read_wait()]


def shown(at: Scenario) -> list[tuple[str, int]]:
    return at.database.rows(at.settings, "select wait_expiration_uuid, wait_offset from wait order by wait_offset")


@pytest.mark.timeout(500)
def test_the_view_is_exact_and_what_expired_goes_out_once(scenario: ScenarioFactory, spark: SparkSession) -> None:
    at = scenario({"sink.poll_interval_s": 0.1})
    for name, value in COMPACTED_SOON.items():
        at.set_config(at.settings.wait.topic, name, value)
    later = 600_000
    resolved, renewed, expired, again = at.register([at.wait_record(n) for n in range(4)])
    at.resolve([resolved, again])
    (renewed,) = at.register([at.wait_record(1, expires_in_ms=later, wait_id=renewed.wait_id)])
    (again,) = at.register([at.wait_record(3, wait_id=again.wait_id)])
    tombstone, standing = 4, [expired, renewed, again]  # the tombstone of the resolved one, after four wait records
    # The last segment is never compacted: one more record closes it.
    (last,) = at.register([at.wait_record(4, expires_in_ms=later)])
    left = sorted([tombstone, *(item.offset for item in (*standing, last))])
    wait_until(lambda: offsets(at) == left, 280, "the compaction of what was replaced")

    SinkService(at.settings, spark, once=True).run()
    view = sorted(((item.wait_id, item.offset) for item in (*standing, last)), key=lambda row: row[1])
    assert shown(at) == view
    assert at.database.rows(at.settings, "select * from late_outcome") == [], (
        "a tombstone that lost its wait isn't late"
    )

    at.database.rows(at.settings, "delete from wait where wait_expiration_uuid = %s returning 1", expired.wait_id)
    assert rebuild(at.settings, spark).changed == 1
    assert shown(at) == view

    assert (at.sweep().counts[RowOutcome.EXPORTED], at.sweep().counts[RowOutcome.EXPORTED]) == (2, 0)
    assert at.dead_lettered_ids() == sorted([expired.wait_id, again.wait_id])
    SinkService(at.settings, spark, once=True).run()
    assert shown(at) == [(item.wait_id, item.offset) for item in (renewed, last)]
