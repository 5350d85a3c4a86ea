"""Alongside a Connect sink a rebuild makes the table exact; our sink refuses rows that it can't know (P3, P6)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from sink.read.start_positions import wait_start
from sink.rebuild.tables import rebuild
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.kafka_io import group_member
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, FencedError
from wait_registry.settings.sink import SinkKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ids_shown(at: Scenario) -> set[str]:
    return {wait_id for (wait_id,) in at.database.rows(at.settings, "select wait_expiration_uuid from wait")}


@pytest.mark.guarantee("P3.8", "P3.20", "C.4")
@pytest.mark.timeout(300)
def test_a_rebuild_makes_the_rows_those_of_the_log(scenario: ScenarioFactory, spark: SparkSession) -> None:
    at = scenario({"sink.kind": "connect"})
    settings = changed(at.settings, "sink", connect_group=f"{at.settings.processor.group}.wait.sink")
    resolved, lost, standing = at.register([at.wait_record(number, expires_in_ms=600_000) for number in range(3)])
    at.show()  # with the position of a sink of ours
    at.resolve([resolved])
    at.database.execute(settings, "delete from wait where wait_expiration_uuid = %s", (lost.wait_id,))

    group = settings.sink.connect_group
    with closing(group_member(at.topics.bootstrap, group, [settings.wait.topic], "classic")) as task:
        wait_until(lambda: task.poll(0.1) or task.assignment(), what="a task in the sink's group")
        with pytest.raises(FencedError, match="has 1 members"):
            rebuild(settings, spark)
        with pytest.raises(FencedError, match=f"reads the partitions 0 of {settings.wait.topic}"):
            rebuild(changed(settings, "sink", kind=SinkKind.SPARK), spark)
    slot = f"waitreg_{settings.postgres.schema_name}_expired"
    with at.database.connect(settings) as source:
        source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        with pytest.raises(FencedError, match="a Kafka Connect source reads expired_outbox"):
            rebuild(settings, spark)
    assert ids_shown(at) == {resolved.wait_id, standing.wait_id}

    def interrupted(*_: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        rebuild(settings, spark, progress=interrupted)
    position = at.database.rows(settings, "select count(*) from sink_progress")
    assert position == [(1,)], "what isn't rebuilt yet must not pass for complete: a Connect source would export it"

    [part] = rebuild(settings, spark).partitions
    assert (part.missing, part.orphans) == (1, 1)
    assert ids_shown(at) == {lost.wait_id, standing.wait_id}
    assert at.database.rows(settings, "select count(*) from sink_progress") == [(0,)]

    ours = changed(settings, "sink", kind=SinkKind.SPARK)
    with at.database.connect(ours) as connection:
        with pytest.raises(ConfigurationError, match="waitreg rebuild"):
            wait_start(connection, at.admin, ours.wait)
        rebuild(ours, spark)
        assert wait_start(connection, at.admin, ours.wait).new == frozenset()
    assert ids_shown(at) == {lost.wait_id, standing.wait_id}
