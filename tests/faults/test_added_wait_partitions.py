"""Partitions added to the wait topic while records wait in it: nothing changes until a client writes there."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from sink.rebuild.tables import rebuild
from sink.service import SinkService
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario, sweeper_of
from tests.support.database import Database
from tests.support.settings import changed
from wait_registry.errors import ConfigurationError
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USED, THEN = 2, 5


def sweep(settings: Settings) -> None:
    with closing(sweeper_of(settings)) as sweeper:
        sweeper.run_once()


def shown(at: Scenario, settings: Settings) -> list[str]:
    rows = at.database.rows(settings, "select wait_expiration_uuid from wait order by 1")
    return [wait_id for (wait_id,) in rows]


@pytest.mark.fault("F78")
def test_what_waited_is_shown_rebuilt_and_exported_as_before(scenario: ScenarioFactory, spark: SparkSession) -> None:
    at = scenario({"wait.partitions": USED, "sink.poll_interval_s": 0.1})
    waiting = [
        item for partition in range(USED) for item in at.register([at.wait_record(n) for n in range(6)], partition)
    ]
    SinkService(at.settings, spark, once=True).run()
    at.topics.grow(at.settings.wait.topic, THEN)
    at.resolve(waiting[::2])
    left = sorted(item.wait_id for item in waiting[1::2])
    SinkService(at.settings, spark, once=True).run()
    assert shown(at, at.settings) == left
    assert rebuild(at.settings, spark).changed == 0
    sweep(at.settings)
    assert at.dead_lettered_ids() == left


@pytest.mark.fault("F79")
def test_records_in_new_partitions_stop_all_until_the_runbook_is_followed(
    scenario: ScenarioFactory, spark: SparkSession, database: Database
) -> None:
    at = scenario({"wait.partitions": USED, "sink.poll_interval_s": 0.1})
    ours = at.register([at.wait_record(n) for n in range(4)])
    SinkService(at.settings, spark, once=True).run()
    at.topics.grow(at.settings.wait.topic, THEN)
    # Of a group whose processors were given another number.
    theirs = at.register([at.wait_record(n, group="another") for n in range(4)], THEN - 1)
    at.resolve([*ours[::2], *theirs[::2]])
    said = f"records in partition {THEN - 1}, expected none beyond wait.partitions = {USED}"
    for refuses in (lambda: SinkService(at.settings, spark, once=True).run(), lambda: rebuild(at.settings, spark)):
        with pytest.raises(ConfigurationError, match=said):
            refuses()
    with pytest.raises(ConfigurationError, match=said):
        sweep(at.settings)
    assert at.dead_lettered_ids() == []
    # As the runbook says: the old topic with all its partitions, in a schema of its own.
    old = changed(at.settings, "wait", partitions=THEN)
    old = changed(old, "postgres", schema_name=f"w{uuid.uuid4().hex}")
    database.install(old)
    SinkService(old, spark, once=True).run()
    left = sorted(item.wait_id for item in (*ours[1::2], *theirs[1::2]))
    assert shown(at, old) == left
    sweep(old)
    assert at.dead_lettered_ids() == left
    SinkService(old, spark, once=True).run()
    assert shown(at, old) == []
