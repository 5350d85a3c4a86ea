"""P3, P6: a rebuild makes the tables exact, and what it or a first reading shows halfway is not exported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sink.position import PositionExpired
from sink.rebuild.tables import rebuild
from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import Connection
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, transaction, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

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


EXPIRED_S = -3600.0
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


def beside_a_source(prepared: SettingsFactory, database: Database, **more: object) -> tuple[Settings, Connection]:
    """Return settings, and a connection to a schema in which a source asks after each batch."""
    settings = prepared({"wait.partitions": 1, "sink.poll_interval_s": 0.2, **more})
    connection = database.connect(settings)
    connection.execute(EAGER_SOURCE.format(topic=settings.wait.topic).encode())
    return settings, connection


def exported(connection: Connection) -> list[str]:
    """Return the ids in the outbox."""
    return [row[0] for row in connection.execute("select wait_expiration_uuid from expired_outbox").fetchall()]


@pytest.mark.guarantee("P3.18")
def test_what_a_first_reading_shows_halfway_is_not_exported(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings, connection = beside_a_source(prepared, database, **{"sink.max_batch_records": 8})
    log, standing, resolved = WaitTopic(topics, settings.wait.topic), new_id(), [new_id() for _ in range(20)]
    log.write(wait_record(standing, 0, expires_in_s=EXPIRED_S))
    log.write(*(wait_record(one, 0, expires_in_s=EXPIRED_S) for one in resolved))
    log.write(*(tombstone(one, 0) for one in resolved))

    with connection:
        assert start_sink(settings, once=True).wait_ended() is None

        row = connection.execute("select max(standing) from filled").fetchone()
        assert row is not None and row[0] > len(resolved) / 3, "no batch ended while much stood open"
        assert rows_of(database, settings) == log.rows
        assert exported(connection) == [standing]


@pytest.mark.guarantee("P3.18")
def test_what_an_open_transaction_kept_from_a_rebuild_is_read_before_anything_is_exported(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink, spark: SparkSession
) -> None:
    settings, connection = beside_a_source(prepared, database)
    log, resolved = WaitTopic(topics, settings.wait.topic), new_id()
    log.write(wait_record(resolved, 0, expires_in_s=EXPIRED_S))
    with connection:
        with transaction(topics, log.name, commit=True) as producer:
            producer.produce(log.name, key=new_id().encode(), value=None, partition=0)
            producer.flush()
            log.write(tombstone(resolved, 0))
            rebuild(settings, spark)
            assert list(rows_of(database, settings)) == [resolved]
        assert exported(connection) == []

        assert start_sink(settings, once=True).wait_ended() is None

        assert rows_of(database, settings) == {}
        assert exported(connection) == []
