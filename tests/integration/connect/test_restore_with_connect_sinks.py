"""P4, P6: the steps of connect-configs/README.md after a restore of Postgres, with Kafka Connect sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sink.rebuild.tables import rebuild
from tests.conftest import SettingsFactory
from tests.integration.connect.families import SinkFamily
from tests.integration.connect.rows import wait_ids
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.connect_connectors import Connectors
from tests.support.connect_dead_letters import dead_letters
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 2


@pytest.mark.guarantee("C.6")
@pytest.mark.timeout(300)
def test_after_a_restore_both_tables_become_exact(
    connectors: Connectors, prepared: SettingsFactory, topics: Topics, database: Database, spark: SparkSession
) -> None:
    family = SinkFamily("debezium")
    settings = prepared({"wait.partitions": PARTITIONS, "dead_letter.partitions": PARTITIONS, "sink.kind": "connect"})
    log = WaitTopic(topics, settings.wait.topic)
    old, resolved, new = (new_id() for _ in range(3))
    letters = dead_letters(PARTITIONS)
    log.write(wait_record(old, 0), wait_record(resolved, 1))
    topics.produce(settings.dead_letter.topic, [*letters])
    waits = connectors.start(family.file("wait.sink"), settings)
    dead = connectors.start(family.file("dead_letter.sink"), settings)
    wait_until(lambda: wait_ids(database, settings) == {old, resolved}, what="the first rows")
    wait_until(lambda: count_letters(database, settings) == len(letters), what="all dead letters")
    with database.connect(settings) as connection:
        connection.execute("create table backup as select * from wait")

    log.write(tombstone(resolved, 1), wait_record(new, 1))
    wait_until(lambda: wait_ids(database, settings) == {old, new}, what="what came after the backup")
    with database.connect(settings) as connection:
        connection.execute("truncate wait; insert into wait select * from backup; delete from dead_letter")

    for name in (waits, dead):
        connectors.rest.stop(name)
    own = {"connect_group": f"connect-{waits}"}
    settings = settings.model_copy(update={"sink": settings.sink.model_copy(update=own)})
    wait_until(lambda: members(topics, settings) == 0, what="an empty group of the sink")
    rebuild(settings, spark)
    connectors.rest.forget_offsets(dead)
    for name in (waits, dead):
        connectors.rest.resume(name)

    assert wait_ids(database, settings) == {old, new}
    wait_until(lambda: count_letters(database, settings) == len(letters), what="all dead letters again")
    log.write(tombstone(old, 0))
    wait_until(lambda: wait_ids(database, settings) == {new}, what="a sink that continues")


def count_letters(database: Database, settings: Settings) -> int:
    """Return how many dead letters the table has."""
    [(letters,)] = database.rows(settings, "select count(*) from dead_letter")
    return int(letters)


def members(topics: Topics, settings: Settings) -> int:
    """Return how many members the sink's consumer group has."""
    group = settings.sink.connect_group
    return len(topics.admin.describe_consumer_groups([group])[group].result(15).members)
