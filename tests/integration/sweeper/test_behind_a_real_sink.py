"""Sweeper and sink together: behind, then level, then empty again, and each expired record once in every place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.service import SinkService
from sweeper.result import RowOutcome
from tests.integration.sweeper.conftest import ScenarioFactory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.guarantee("P3.1")
@pytest.mark.fault("F61")
def test_a_sweep_while_the_sink_is_behind_exports_exactly_what_the_log_leaves_open(
    scenario: ScenarioFactory, spark: SparkSession
) -> None:
    at = scenario({"wait.partitions": 2, "sink.poll_interval_s": 0.1})
    early = [item for partition in (0, 1) for item in at.register([at.wait_record(n) for n in range(20)], partition)]
    SinkService(at.settings, spark, once=True).run()
    assert at.database.rows(at.settings, "select count(*) from wait") == [(40,)]

    # From here on the sink sleeps: half are resolved, and more have come that it has not shown.
    at.resolve(early[::2])
    late = at.register([at.wait_record(n) for n in range(100, 110)])
    results = [at.sweep(partition, chunk_rows=3) for partition in (0, 1)]
    assert sum(result.counts[RowOutcome.EXPORTED] for result in results) == 20
    assert sum(result.counts[RowOutcome.SUPERSEDED] for result in results) == 20
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in early[1::2])

    SinkService(at.settings, spark, once=True).run()
    shown = at.database.rows(at.settings, "select wait_expiration_uuid from wait order by 1")
    assert [wait_id for (wait_id,) in shown] == sorted(item.wait_id for item in late)
    assert [at.sweep(partition).counts[RowOutcome.EXPORTED] for partition in (0, 1)] == [10, 0]

    SinkService(at.settings, spark, once=True).run()
    assert at.database.rows(at.settings, "select count(*) from wait") == [(0,)]
    letters = at.database.rows(
        at.settings, "select wait_expiration_uuid, reason, finished_late from dead_letter order by 1"
    )
    expected = sorted(item.wait_id for item in (*early[1::2], *late))
    assert letters == [(wait_id, "expired", False) for wait_id in expected]
    assert at.dead_lettered_ids() == expected
