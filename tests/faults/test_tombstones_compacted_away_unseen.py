"""P3, P6: tombstones that compaction removed while the sink was away are not missed: refused, rebuilt, exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.position import PositionExpired
from sink.rebuild.tables import rebuild
from sweeper.result import Skip
from tests.integration.sink.conftest import StartSink
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLEANED_AT_ONCE = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "min.compaction.lag.ms": "0"}
FORGOTTEN_SOON_MS, LATER_MS = 1_000, 600_000


@pytest.mark.fault("F66")
@pytest.mark.timeout(300)
def test_sink_and_sweeper_refuse_and_a_rebuild_makes_the_view_exact(
    scenario: ScenarioFactory, start_sink: StartSink, spark: SparkSession
) -> None:
    at = scenario({"sink.poll_interval_s": 0.1, "wait.delete_retention_ms": FORGOTTEN_SOON_MS})
    for name, value in {**CLEANED_AT_ONCE, "delete.retention.ms": str(LATER_MS)}.items():
        at.set_config(at.settings.wait.topic, name, value)
    resolved = at.register([at.wait_record(number) for number in range(3)])
    expired, standing = at.register([at.wait_record(3), at.wait_record(4, LATER_MS)])
    assert start_sink(at.settings, once=True).wait_ended() is None
    assert shown(at) == sorted(item.wait_id for item in (*resolved, expired, standing))

    at.resolve(resolved)
    at.set_config(at.settings.wait.topic, "delete.retention.ms", str(FORGOTTEN_SOON_MS))
    wait_until(lambda: forgotten(at, resolved), 120, "the compaction of the tombstones", poll_s=0.5)

    assert isinstance(start_sink(at.settings, once=True).wait_ended(), PositionExpired)
    swept = at.sweep()
    assert (swept.counts, swept.skip) == ({}, Skip.POSITION_TOO_OLD), "three of the rows shown are resolved"
    assert "waitreg rebuild" in swept.reason

    at.set_config(at.settings.wait.topic, "delete.retention.ms", str(LATER_MS))  # as long as a rebuild may take
    assert sum(part.orphans for part in rebuild(at.settings, spark).partitions) == len(resolved)
    assert set(shown(at)) >= {expired.wait_id, standing.wait_id}
    assert not set(shown(at)) & {item.wait_id for item in resolved}
    assert at.sweep().counts == {"exported": 1}
    assert at.dead_lettered_ids() == [expired.wait_id]
    assert start_sink(at.settings, once=True).wait_ended() is None
    assert standing.wait_id in shown(at)
    assert expired.wait_id not in shown(at)


def forgotten(at: Scenario, resolved: list[Registered]) -> bool:
    """Return whether the log has lost every trace of these; a record more closes a segment for the next cleaning."""
    at.register([at.wait_record(5, LATER_MS)])
    return not {record.key for record in at.read_wait()} & {item.wait_id.encode() for item in resolved}


def shown(at: Scenario) -> list[str]:
    rows = at.database.rows(at.settings, "select wait_expiration_uuid from wait order by 1")
    return [wait_id for (wait_id,) in rows]
