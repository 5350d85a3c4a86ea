"""A redrive alongside the tables of Kafka Connect sinks (R1), and the restore of these tables (P4, P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.rebuild.tables import rebuild
from tests.integration.connect.dead_letters import dead_letters
from tests.integration.connect.sinking import SinkingFactory
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.conftest import StartSink, start_sink
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.records.operation import Mark, State

__all__ = ["start_sink"]

DEAD_LETTERS = 6


@pytest.mark.guarantee("R1.11")
@pytest.mark.timeout(900)
def test_a_redrive_sends_each_delivery_once(sinking: SinkingFactory, start_sink: StartSink) -> None:
    kept = sinking({"wait.partitions": 1, "sink.kind": "connect", "processor.expiry_policy": "redeliver"})
    at = Scenario(kept.settings, kept.topics, kept.database)
    waiting = at.lineage(0).wait_id
    at.dead_letters(DEAD_LETTERS)
    kept.log.write(wait_record(waiting, 0))
    waits, _ = kept.start(), kept.start("dead_letter.sink")
    at.settings = changed(at.settings, "sink", connect_group=f"connect-{waits}")
    kept.wait_for_rows("the registration")
    count = "select count(*) from dead_letter"
    wait_until(lambda: at.rows(count) == [(DEAD_LETTERS,)], what="all dead letters")
    start_sink(at.settings).wait_ready()
    first, second = at.request(job="job-1", limit=3).job, at.request(job="job-2").job
    assert second.expected == {"still_waiting": 1, "redriven": DEAD_LETTERS - 1}
    assert at.execute(first).state is State.FINISHED
    kept.log.write(tombstone(waiting, 0))
    kept.wait_for_rows("no registration")
    assert at.execute(second).counts["still_waiting"] == 0
    sent = [mark.wait_id for mark in at.events() if isinstance(mark, Mark)]
    assert len(sent) == len(set(sent)) == len(at.sent()) == DEAD_LETTERS
    redriven = "select count(*) from dead_letter where state = 'redriven'"
    wait_until(lambda: at.rows(redriven) == [(DEAD_LETTERS,)], 240, "the states of all dead letters")


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 2


@pytest.mark.guarantee("C.6")
@pytest.mark.timeout(300)
def test_after_a_restore_both_tables_become_exact(sinking: SinkingFactory, spark: SparkSession) -> None:
    at = sinking({"wait.partitions": PARTITIONS, "dead_letter.partitions": PARTITIONS, "sink.kind": "connect"})
    old, resolved, new = (new_id() for _ in range(3))
    letters = dead_letters(PARTITIONS)

    def await_letters(what: str) -> None:
        count = "select count(*) from dead_letter"
        wait_until(lambda: at.database.rows(at.settings, count) == [(len(letters),)], what=what)

    at.log.write(wait_record(old, 0), wait_record(resolved, 1))
    at.topics.produce(at.settings.dead_letter.topic, [*letters])
    waits, dead = started = at.start(), at.start("dead_letter.sink")
    at.wait_for_rows("the first rows")
    await_letters("all dead letters")
    at.database.execute(at.settings, "create table backup as select * from wait")
    at.log.write(tombstone(resolved, 1), wait_record(new, 1))
    at.wait_for_rows("what came after the backup")
    at.database.execute(at.settings, "truncate wait; insert into wait select * from backup; delete from dead_letter")
    for name in started:
        at.connectors.rest.stop(name)
    group = f"connect-{waits}"
    described = at.topics.admin.describe_consumer_groups
    wait_until(lambda: not described([group])[group].result(15).members, what="an empty group of the sink")
    rebuild(changed(at.settings, "sink", connect_group=group), spark)
    at.connectors.rest.forget_offsets(dead)
    for name in started:
        at.connectors.rest.resume(name)
    assert set(at.rows()) == {old, new}
    await_letters("all dead letters again")
    at.log.write(tombstone(old, 0))
    at.wait_for_rows("a sink that continues")
