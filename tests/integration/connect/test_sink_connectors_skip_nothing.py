"""P1, P6, P8: whatever a Kafka Connect sink meets, no wait record and no tombstone is skipped."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.families import SinkFamily
from tests.integration.connect.rows import wait_places
from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.connect_connectors import Connectors
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.local.connect_worker import ConnectWorker

PARTITIONS = 3
REFUSED = b"refused by the database"


@pytest.mark.guarantee("C.1", "C.8")
def test_a_database_error_stops_the_sink_before_anything_is_skipped(
    sink_family: SinkFamily,
    connectors: Connectors,
    connect: ConnectWorker,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
) -> None:
    settings = prepared({"wait.partitions": PARTITIONS})
    log = WaitTopic(topics, settings.wait.topic)
    topics.delete_at_end(unreadable := f"{settings.wait.topic}.unreadable")
    resolved, refused, renewed = (new_id() for _ in range(3))
    log.write(wait_record(resolved, 0), wait_record(refused, 0, value=REFUSED), wait_record(renewed, 1))
    with database.connect(settings) as connection:
        connection.execute("alter table wait add constraint refusing check (body <> 'refused by the database')")
    name = connectors.start(sink_family.file("wait.sink"), settings, **sink_family.changes, **sink_family.impatient)

    trace = connectors.wait_failed(name)
    log.write(tombstone(resolved, 0), tombstone(renewed, 1), wait_record(renewed, 1, delivery=2))
    assert "refusing" in trace
    for shown in (trace, connect.log.read_text("utf-8", "replace")):
        assert REFUSED.decode() not in shown
        assert REFUSED.hex() not in shown
    assert unreadable not in topics.admin.list_topics(timeout=15).topics or topics.read(unreadable) == []

    with database.connect(settings) as connection:
        connection.execute("alter table wait drop constraint refusing")
    connectors.rest.restart_failed(name)
    wait_until(lambda: wait_places(database, settings) == log.rows, what="the rows after the restart")
    assert set(log.rows) == {refused, renewed}


def test_a_renewed_registration_keeps_its_creation_time(
    sink_family: SinkFamily, connectors: Connectors, prepared: SettingsFactory, topics: Topics, database: Database
) -> None:
    settings = prepared({"wait.partitions": PARTITIONS})
    log = WaitTopic(topics, settings.wait.topic)
    topics.delete_at_end(f"{settings.wait.topic}.unreadable")
    log.write(wait_record(renewed := new_id(), 0))
    connectors.start(sink_family.file("wait.sink"), settings, **sink_family.changes)
    wait_until(lambda: wait_places(database, settings) == log.rows, what="the row")
    first = database.rows(settings, "select created_at from wait")
    log.write(wait_record(renewed, 0, delivery=2))
    wait_until(lambda: wait_places(database, settings) == log.rows, what="the renewed row")
    assert database.rows(settings, "select created_at from wait") == first


@pytest.mark.timeout(300)
def test_the_tables_are_exact_after_worker_and_postgres_were_killed(
    sink_family: SinkFamily,
    connectors: Connectors,
    connect: ConnectWorker,
    settings_for: SettingsFactory,
    topics: Topics,
    own_stack: OwnStack,
) -> None:
    settings = settings_for({"wait.partitions": PARTITIONS, "postgres.url": own_stack.postgres_url})
    topics.create_own(settings)
    topics.delete_at_end(f"{settings.wait.topic}.unreadable")
    database = Database(own_stack.postgres_url)
    database.install(settings)
    log = WaitTopic(topics, settings.wait.topic)
    stories = story(random.Random(5), 8_000)
    # Small polls: the first rows are there long before the last.
    changes = {**sink_family.changes, **sink_family.impatient, "consumer__override__max__poll__records": "500"}
    name = connectors.start(sink_family.file("wait.sink"), settings, **changes)

    log.write(*next(stories))
    wait_until(lambda: bool(wait_places(database, settings)), what="the first rows")
    connect.kill()
    assert wait_places(database, settings) != log.rows, "the worker was killed too late to be in the middle"
    connect.start()
    wait_until(lambda: wait_places(database, settings) == log.rows, what="the rows after kill -9")

    own_stack.postgres.kill()
    log.write(*next(stories))
    connectors.wait_failed(name)
    own_stack.postgres.start()
    connectors.rest.restart_failed(name)
    wait_until(lambda: wait_places(database, settings) == log.rows, what="the rows after Postgres' crash")
    database.close()


def story(random_: random.Random, entries: int) -> Iterator[list[Outgoing]]:
    """Yield stretches of a wait topic in which ids are registered, resolved and registered again, all mixed up."""
    ids = [new_id() for _ in range(entries // 4)]
    while True:
        chosen = [random_.randrange(len(ids)) for _ in range(entries)]
        yield [
            wait_record(ids[n], n % PARTITIONS) if random_.random() < 0.6 else tombstone(ids[n], n % PARTITIONS)
            for n in chosen
        ]
