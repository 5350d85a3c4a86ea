"""P3, P6: a rebuild makes the tables exact, and what it or a first reading shows halfway is not exported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sink.position import PositionExpired, TopicPartition
from sink.rebuild.tables import rebuild
from tests.integration.connect.outbox import Connection
from tests.integration.sink.conftest import SinkScenario, SinkScenarioFactory
from tests.integration.sink.wait_topic import new_id, rows_of, tombstone, transaction, wait_record
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETENTION_S = 1.0
EXPIRED_S = -3600.0
OLD_POSITIONS = "update sink_progress set position_time = now() - interval '37 hours'"
# Calls what a Connect source calls, each time that a position moves: at the end of that transaction.
EAGER_SOURCE = """
create table filled (number int, standing int);
create function ask() returns trigger language plpgsql as $$
begin
    insert into filled
    select fill_expired_outbox('{topic}', 0, 1000, 0, 'dlq', 67108864), (select count(*) from wait);
    return null;
end $$;
create constraint trigger ask after update on sink_progress deferrable initially deferred
    for each row execute function ask();
"""


@pytest.mark.fault("F60")
def test_an_old_position_is_refused_until_a_rebuild(sink_scenario: SinkScenarioFactory, spark: SparkSession) -> None:
    at, ids = sink_scenario({"sink.idle_progress_s": 1, "sink.max_batch_records": 7}), [new_id() for _ in range(40)]
    at.log.write(*[wait_record(wait_id, number % 4, value=b"%d" % number) for number, wait_id in enumerate(ids)])
    running = at.start().wait_ready()
    at.wait_exact()
    with pytest.raises(FencedError, match="a sink is running"):
        rebuild(at.settings, spark)
    running.stop()

    # Away for more than half of 72 h: tombstones may be gone that would have been read.
    ended = [tombstone(wait_id, number % 4) for number, wait_id in enumerate(ids) if number % 3]
    at.log.write(*ended, wait_record(ids[0], 0))
    at.execute(OLD_POSITIONS)
    at.execute("update wait set body = 'changed' where wait_expiration_uuid = %s", ids[3])
    at.execute("update wait set idempotency_key = null where wait_expiration_uuid = %s", ids[9])
    at.execute("delete from wait where wait_expiration_uuid = %s", ids[6])
    before = rows_of(at.database, at.settings)
    refused = at.start()
    assert isinstance(refused.wait_ended(), PositionExpired)
    assert "waitreg rebuild" in str(refused.error)
    assert rows_of(at.database, at.settings) == before

    reported = rebuild(at.settings, spark, dry_run=True)
    assert rows_of(at.database, at.settings) == before
    done = rebuild(at.settings, spark)
    assert done.partitions == reported.partitions
    assert (sum(p.missing for p in done.partitions), sum(p.different for p in done.partitions)) == (1, 3)
    assert sum(part.orphans for part in done.partitions) == len(ended)
    assert sum(part.rows for part in done.partitions) == 40 - len(ended)
    assert at.is_exact()
    assert at.rows("select body from wait where wait_expiration_uuid = %s", ids[3]) == [(b"3",)]
    assert at.rows("select idempotency_key from wait where wait_expiration_uuid = %s", ids[9]) == [(ids[9],)]
    assert rebuild(at.settings, spark, dry_run=True).changed == 0

    at.log.write(tombstone(ids[3], 3))
    at.start().wait_ready()
    at.wait_exact("after the rebuild")


@pytest.mark.guarantee("P3.21")
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rebuild_that_takes_longer_than_tombstones_stay_changes_nothing(
    sink_scenario: SinkScenarioFactory, spark: SparkSession, dry_run: bool
) -> None:
    short = {"wait.delete_retention_ms": round(RETENTION_S * 1000), "sink.max_batch_records": 1}
    at, resolved = sink_scenario({"wait.partitions": 1, **short}), new_id()
    at.log.write(wait_record(resolved, 0), wait_record(new_id(), 0), tombstone(resolved, 0))

    def freeze(name: TopicPartition, done: int, total: int) -> None:
        if done == 1:
            until_s = time.monotonic() + RETENTION_S
            wait_until(lambda: time.monotonic() > until_s, 60, "the time after which tombstones go")

    with pytest.raises(PositionExpired, match="the rebuild has taken"):
        rebuild(at.settings, spark, dry_run=dry_run, progress=freeze)
    assert at.rows("select * from wait") == []
    assert {offset for (offset,) in at.rows("select next_offset from sink_progress")} <= {0}


@pytest.mark.guarantee("P4.12")
def test_a_rebuild_that_was_overtaken_changes_nothing(sink_scenario: SinkScenarioFactory, spark: SparkSession) -> None:
    at = sink_scenario({"wait.partitions": 1, "sink.max_batch_records": 1})
    at.log.write(wait_record(new_id(), 0), wait_record(new_id(), 0))
    at.drain()
    at.execute("update wait set body = 'changed'")

    def move(name: TopicPartition, done: int, total: int) -> None:
        at.execute("update sink_progress set next_offset = 1")

    with pytest.raises(FencedError):
        rebuild(at.settings, spark, progress=move)
    assert at.rows("select distinct body from wait") == [(b"changed",)]


def with_a_source(sink_scenario: SinkScenarioFactory, **more: object) -> tuple[SinkScenario, Connection]:
    """Return a scenario, and a connection to its schema, in which a source asks after each batch."""
    at = sink_scenario({"wait.partitions": 1, **more})
    connection = at.database.connect(at.settings)
    connection.execute(EAGER_SOURCE.format(topic=at.log.name).encode())
    return at, connection


def exported(connection: Connection) -> list[str]:
    """Return the IDs in the outbox."""
    return [row[0] for row in connection.execute("select wait_expiration_uuid from expired_outbox").fetchall()]


@pytest.mark.guarantee("P3.18")
def test_what_a_first_reading_shows_halfway_is_not_exported(sink_scenario: SinkScenarioFactory) -> None:
    at, connection = with_a_source(sink_scenario, **{"sink.max_batch_records": 8})
    open_one, resolved = new_id(), [new_id() for _ in range(20)]
    at.log.write(*(wait_record(one, 0, expires_in_s=EXPIRED_S) for one in (open_one, *resolved)))
    at.log.write(*(tombstone(one, 0) for one in resolved))
    with connection:
        at.drain()
        row = connection.execute("select max(standing) from filled").fetchone()
        assert row is not None and row[0] > len(resolved) / 3, "no batch ended while much was open"
        assert at.is_exact()
        assert exported(connection) == [open_one]


@pytest.mark.guarantee("P3.18")
def test_no_export_precedes_an_open_transaction(sink_scenario: SinkScenarioFactory, spark: SparkSession) -> None:
    at, connection = with_a_source(sink_scenario)
    resolved = new_id()
    at.log.write(wait_record(resolved, 0, expires_in_s=EXPIRED_S))
    with connection:
        with transaction(at.topics, at.log.name, commit=True) as producer:
            producer.produce(at.log.name, key=new_id().encode(), value=None, partition=0)
            producer.flush()
            at.log.write(tombstone(resolved, 0))
            rebuild(at.settings, spark)
            assert list(rows_of(at.database, at.settings)) == [resolved]
        assert exported(connection) == []
        at.drain()
        assert rows_of(at.database, at.settings) == {}
        assert exported(connection) == []
