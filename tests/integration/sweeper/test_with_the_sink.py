"""Sweeper and sink together: on a log that the sink has not read yet, and on one that was compacted (P3, P4, P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.position import PositionExpired
from sink.rebuild.tables import rebuild
from sink.service import SinkService
from sweeper.result import RowOutcome, Skip
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, ids
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Segments are closed and cleaned at once, so that the broker's cleaner, which runs every 15 s, has work to do.
COMPACTED_SOON = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "min.compaction.lag.ms": "0"}
SOON_MS, LATER_MS = 1_000, 600_000


def shown(at: Scenario) -> list[tuple[str, int]]:
    """Return ID and offset of the rows of the tables, in the order of the offsets."""
    return at.database.rows(at.settings, "select wait_expiration_uuid, wait_offset from wait order by wait_offset")


@pytest.mark.guarantee("P3.1")
@pytest.mark.fault("F61")
def test_a_sweep_ahead_of_a_sink_exports_what_the_log_has_open(scenario: ScenarioFactory, spark: SparkSession) -> None:
    at = scenario({"wait.partitions": 2, "sink.poll_interval_s": 0.1})
    early = [item for partition in (0, 1) for item in at.register([at.wait_record(n) for n in range(20)], partition)]
    SinkService(at.settings, spark, once=True).run()
    assert len(shown(at)) == 40
    # From here on the sink is stopped: half are resolved, and more have come that it has not shown.
    at.resolve(early[::2])
    late = at.register([at.wait_record(n) for n in range(100, 110)])
    results = [at.sweep(partition, chunk_rows=3) for partition in (0, 1)]
    assert results[0].counts + results[1].counts == {"exported": 20, "superseded": 20}
    assert at.dead_lettered_ids() == ids(early[1::2])
    SinkService(at.settings, spark, once=True).run()
    assert sorted(wait_id for wait_id, _ in shown(at)) == ids(late)
    assert [at.sweep(partition).counts[RowOutcome.EXPORTED] for partition in (0, 1)] == [10, 0]
    SinkService(at.settings, spark, once=True).run()
    assert shown(at) == []
    letters = at.database.rows(
        at.settings, "select wait_expiration_uuid, reason, finished_late from dead_letter order by 1"
    )
    expected = ids((*early[1::2], *late))
    assert letters == [(wait_id, "expired", False) for wait_id in expected]
    assert at.dead_lettered_ids() == expected


@pytest.mark.timeout(500)
def test_on_a_compacted_log_the_tables_are_exact(scenario: ScenarioFactory, spark: SparkSession) -> None:
    at = scenario({"sink.poll_interval_s": 0.1})
    for name, value in COMPACTED_SOON.items():
        at.topics.configure(at.settings.wait.topic, name, value)
    resolved, renewed, expired, again = at.register([at.wait_record(n) for n in range(4)])
    at.resolve([resolved, again])
    (renewed,) = at.register([at.wait_record(1, expires_in_ms=LATER_MS, wait_id=renewed.wait_id)])
    (again,) = at.register([at.wait_record(3, wait_id=again.wait_id)])
    tombstone = 4  # of the resolved one, after four wait records
    # The last segment is never compacted: one more record closes it.
    (last,) = at.register([at.wait_record(4, expires_in_ms=LATER_MS)])
    rows = [(item.wait_id, item.offset) for item in (expired, renewed, again, last)]
    left = sorted([tombstone, *(offset for _, offset in rows)])
    wait_until(lambda: [record.offset for record in at.read_wait()] == left, 280, "the compaction of what was replaced")
    SinkService(at.settings, spark, once=True).run()
    assert shown(at) == rows
    late = at.database.rows(at.settings, "select * from late_outcome")
    assert late == [], "a tombstone that lost its wait record isn't late"
    at.database.rows(at.settings, "delete from wait where wait_expiration_uuid = %s returning 1", expired.wait_id)
    assert rebuild(at.settings, spark).changed == 1
    assert shown(at) == rows
    assert (at.sweep().counts[RowOutcome.EXPORTED], at.sweep().counts[RowOutcome.EXPORTED]) == (2, 0)
    assert at.dead_lettered_ids() == ids([expired, again])
    SinkService(at.settings, spark, once=True).run()
    assert shown(at) == [(item.wait_id, item.offset) for item in (renewed, last)]


@pytest.mark.fault("F66")
@pytest.mark.timeout(300)
def test_unseen_compacted_tombstones_need_a_rebuild(scenario: ScenarioFactory, spark: SparkSession) -> None:
    """Compaction removes tombstones while the sink is stopped."""
    at = scenario({"sink.poll_interval_s": 0.1, "wait.delete_retention_ms": SOON_MS})
    for name, value in {**COMPACTED_SOON, "delete.retention.ms": str(LATER_MS)}.items():
        at.topics.configure(at.settings.wait.topic, name, value)
    resolved = at.register([at.wait_record(number) for number in range(3)])
    expired, standing = at.register([at.wait_record(3), at.wait_record(4, LATER_MS)])
    SinkService(at.settings, spark, once=True).run()
    assert sorted(wait_id for wait_id, _ in shown(at)) == ids((*resolved, expired, standing))
    at.resolve(resolved)
    at.topics.configure(at.settings.wait.topic, "delete.retention.ms", str(SOON_MS))
    wait_until(lambda: forgotten(at, resolved), 120, "the compaction of the tombstones", poll_s=0.5)
    with pytest.raises(PositionExpired):
        SinkService(at.settings, spark, once=True).run()
    swept = at.sweep()
    assert (swept.counts, swept.skip) == ({}, Skip.POSITION_TOO_OLD), "three of the rows shown are resolved"
    assert "waitreg rebuild" in swept.reason
    at.topics.configure(at.settings.wait.topic, "delete.retention.ms", str(LATER_MS))  # as long as a rebuild may take
    assert sum(part.orphans for part in rebuild(at.settings, spark).partitions) == len(resolved)
    rebuilt = {wait_id for wait_id, _ in shown(at)}
    assert rebuilt >= {expired.wait_id, standing.wait_id}
    assert not rebuilt & set(ids(resolved))
    assert at.sweep().counts == {"exported": 1}
    assert at.dead_lettered_ids() == [expired.wait_id]
    SinkService(at.settings, spark, once=True).run()
    left = {wait_id for wait_id, _ in shown(at)}
    assert (standing.wait_id in left, expired.wait_id in left) == (True, False)


def forgotten(at: Scenario, resolved: list[Registered]) -> bool:
    """Return whether the log has lost every trace of these; one more record closes a segment for the next cleaning."""
    at.register([at.wait_record(5, LATER_MS)])
    return not {record.key for record in at.read_wait()} & {item.wait_id.encode() for item in resolved}
