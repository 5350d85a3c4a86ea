"""Alongside a Connect sink only what the log shows as open is exported, once; a rebuild makes the table exact (P3).

What a zombie task does, or a Postgres that was restored, is written into the table here as they would leave it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sink.read.start_positions import wait_start
from sink.rebuild.tables import rebuild
from sweeper.connect_policy import LogPolicy
from sweeper.export import fence
from sweeper.result import RowOutcome, Skip, SweepResult
from sweeper.tables_policy import Start
from sweeper.tail import Tail
from sweeper.wait_topic import wait_log
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, export_all, ids, sweeper_of
from tests.support.kafka_io import Outgoing, group_member
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.clock import SystemClock
from wait_registry.errors import ConfigurationError, FencedError
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.sink import SinkKind
from wait_registry.telemetry.exposition import MetricsRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def by_connect(scenario: ScenarioFactory) -> Scenario:
    return scenario({"sink.kind": "connect"})


def leave_behind(at: Scenario, registered: list[Registered]) -> None:
    """Write rows as a task that still runs, and doesn't know of anything later, writes them."""
    written = {(item.partition, item.offset) for item in registered}
    with at.database.connect(at.settings) as connection:
        for record in at.read_wait():
            if (record.partition, record.offset) in written:
                at.insert(connection, record)


def shown_by_connect(at: Scenario, stale: bool = False) -> None:
    """Show all in the tables; ``stale`` leaves a position that a sink of ours had once written."""
    at.show()
    leftover = "update sink_progress set next_offset = 10000, position_time = now(), topic_id = 'one that is gone'"
    with at.database.connect(at.settings) as connection:
        connection.execute(leftover if stale else "delete from sink_progress")


@pytest.mark.guarantee("P3.6", "C.3")
def test_only_open_rows_of_a_zombie_or_a_restore_are_exported(by_connect: Scenario) -> None:
    at = by_connect
    registered = at.register([at.wait_record(number) for number in range(12)])
    renewed, again, open_ones = registered[3:5], registered[5:7], registered[9:]
    at.resolve(registered[:3])
    at.register([at.wait_record(9, expires_in_ms=600_000, wait_id=item.wait_id) for item in renewed])
    at.resolve(again)
    latest = at.register([item.record for item in again])
    at.resolve(registered[7:9], Outcome.EXPIRED)
    # Every first registration is in the table again, and a leftover position claims that all of it is exact.
    shown_by_connect(at, stale=True)
    leave_behind(at, registered)
    first = at.sweep(chunk_rows=2)
    assert (first.counts, first.skip) == ({"exported": 3, "superseded": 9}, None)
    second = at.sweep(chunk_rows=2)
    assert second.counts == {"superseded": 12}, "what was exported is resolved in the log, if not in the table"
    assert at.dead_lettered_ids() == ids(open_ones)
    shown_by_connect(at)
    assert at.sweep().counts[RowOutcome.EXPORTED] == 2, "registered again after their tombstones: theirs by now"
    shown_by_connect(at)
    assert at.sweep().counts[RowOutcome.EXPORTED] == 0
    assert at.dead_lettered_ids() == ids((*open_ones, *latest))


@pytest.mark.guarantee("C.6")
def test_a_row_without_its_wait_record_in_the_log_asks_for_a_rebuild(by_connect: Scenario) -> None:
    at = by_connect
    ghost, standing = at.register([at.wait_record(0), at.wait_record(1)])
    shown_by_connect(at, stale=True)
    at.database.execute(
        at.settings,
        # Of another ID than the log has there, as if its wait record was compacted away.
        "update wait set wait_expiration_uuid = gen_random_uuid()::text where wait_expiration_uuid = %s",
        (ghost.wait_id,),
    )
    registry = MetricsRegistry()
    sweep = sweeper_of(at.settings, registry=registry).run_once()
    assert (sweep.result, sweep.counts) == (SweepResult.DONE, {"exported": 1, "unseen": 1})
    assert at.dead_lettered_ids() == [standing.wait_id]
    [(left,)] = at.database.rows(at.settings, "select skipped from sweep")
    assert (left[0]["rows"], "waitreg rebuild" in left[0]["reason"]) == (1, True)
    exposed = registry.expose().decode()
    assert '\nwaitreg_sweeper_rows_total{outcome="unseen"} 1.0\n' in exposed
    assert "\nwaitreg_sweeper_tables_staleness_seconds " not in exposed, "an unknown age raises no alarm"


@pytest.mark.guarantee("P3.7")
def test_an_old_wait_record_compacted_during_the_read_is_not_exported(by_connect: Scenario) -> None:
    """The cleaner may pass a reader: the wait record was read, its tombstone is gone before the reader comes to it."""
    at = by_connect
    _ghost, standing = at.register([at.wait_record(0), at.wait_record(1)], days_old=10)
    shown_by_connect(at)
    with at.export() as task:
        again = replace(task, scope=replace(task.scope, tables=CleanedMeanwhile(at, [standing])))
        counts = export_all(fence(again).snapshot().read_tail().chunks())
    assert counts == {"exported": 1, "unseen": 1}
    assert at.dead_lettered_ids() == [standing.wait_id]


def test_an_old_wait_record_that_the_log_still_has_is_exported(by_connect: Scenario) -> None:
    at = by_connect
    old = at.register([at.wait_record(number) for number in range(3)], days_old=10)
    young = at.register([at.wait_record(3)])
    at.resolve(old[:1])
    shown_by_connect(at)
    leave_behind(at, old[:1])
    assert at.sweep().counts == {"exported": 3, "superseded": 1}
    assert at.dead_lettered_ids() == ids((*old[1:], *young))


@pytest.mark.guarantee("C.8")
def test_rows_of_an_unknown_sink_are_refused(at: Scenario) -> None:
    at.register([at.wait_record(1)])
    shown_by_connect(at)
    refused = at.sweep()
    assert (refused.counts, refused.skip) == ({}, Skip.REFUSED)
    assert "sink.kind" in refused.reason and "waitreg rebuild" in refused.reason
    assert at.dead_lettered_ids() == []


class CleanedMeanwhile(LogPolicy):
    """The second look reads the log as the cleaner would have left it, in a topic of its own."""

    def __init__(self, at: Scenario, standing: list[Registered]) -> None:
        cleaned = at.topics.create(f"{at.settings.wait.topic}.cleaned", 1)
        by_offset = {record.offset: record for record in at.read_wait()}
        kept = {item.offset for item in standing}
        at.topics.produce(
            cleaned,
            [Outgoing(r.value, r.key if r.offset in kept else b"another", r.headers, 0) for r in by_offset.values()],
        )
        settings = changed(at.settings, "wait", topic=cleaned)
        self._cleaned = TailReader(wait_log(settings, 0), at.admin, SystemClock(), Tail(0, 1))

    def start(self, *question: Any) -> Any:
        return OtherLog(super().start(*question), self._cleaned)


class OtherLog:
    """A start that is confirmed by another reader."""

    def __init__(self, start: Start, reader: TailReader) -> None:
        self.position, self.tail, self._start, self._reader = start.position, start.tail, start, reader

    def confirm(self, _: TailReader) -> None:
        self._start.confirm(self._reader)


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
