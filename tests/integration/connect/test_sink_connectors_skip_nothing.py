"""P1, P6, P8: whatever a Kafka Connect sink meets, no wait record and no tombstone is skipped."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.sinking import Sinking, SinkingFactory
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.connect_connectors import Connectors
from tests.support.connect_worker import ConnectWorker
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until

PARTITIONS = 3
REFUSED = b"refused by the database"


@pytest.mark.guarantee("C.1", "C.8")
def test_a_database_error_stops_the_sink_before_it_skips_a_row(sinking: SinkingFactory, connect: ConnectWorker) -> None:
    at = sinking({"wait.partitions": PARTITIONS})
    resolved, refused, renewed = (new_id() for _ in range(3))
    at.log.write(wait_record(resolved, 0), wait_record(refused, 0, value=REFUSED), wait_record(renewed, 1))
    at.database.execute(
        at.settings, "alter table wait add constraint refusing check (body <> 'refused by the database')"
    )
    name = at.start_impatient()
    trace = at.connectors.wait_failed(name)
    at.log.write(tombstone(resolved, 0), tombstone(renewed, 1), wait_record(renewed, 1, delivery=2))
    assert "refusing" in trace
    for shown in (trace, connect.log.read_text("utf-8", "replace")):
        assert REFUSED.decode() not in shown
        assert REFUSED.hex() not in shown
    assert at.refused() == []
    at.database.execute(at.settings, "alter table wait drop constraint refusing")
    at.connectors.rest.restart_failed(name)
    at.wait_for_rows("the rows after the restart")
    assert set(at.log.rows) == {refused, renewed}


def test_a_renewed_registration_keeps_its_creation_time(sinking: SinkingFactory) -> None:
    at = sinking({"wait.partitions": PARTITIONS})
    at.log.write(wait_record(renewed := new_id(), 0))
    at.start()
    at.wait_for_rows("the row")
    first = at.database.rows(at.settings, "select created_at from wait")
    at.log.write(wait_record(renewed, 0, delivery=2))
    at.wait_for_rows("the renewed row")
    assert at.database.rows(at.settings, "select created_at from wait") == first


@pytest.fixture
def on_own_postgres(
    connectors: Connectors, settings_for: SettingsFactory, topics: Topics, own_stack: OwnStack
) -> Iterator[Sinking]:
    """Sinks that write to a Postgres that the test may kill."""
    settings = settings_for({"wait.partitions": PARTITIONS, "postgres.url": own_stack.postgres_url})
    topics.create_own(settings)
    database = Database(own_stack.postgres_url)
    database.install(settings)
    yield Sinking(connectors, topics, database, settings)
    database.close()


@pytest.mark.guarantee("C.6")
@pytest.mark.timeout(300)
def test_tables_are_exact_after_kills(on_own_postgres: Sinking, connect: ConnectWorker, own_stack: OwnStack) -> None:
    at, stories = on_own_postgres, story(random.Random(5), 8_000)
    # Small polls: the first rows are there long before the last.
    name = at.start_impatient({"consumer.override.max.poll.records": "500"})
    at.log.write(*next(stories))
    wait_until(lambda: bool(at.rows()), what="the first rows")
    connect.kill()
    assert at.rows() != at.log.rows, "the worker was killed too late to be in the middle"
    connect.start()
    at.wait_for_rows("the rows after kill -9")
    own_stack.postgres.kill()
    at.log.write(*next(stories))
    at.connectors.wait_failed(name)
    own_stack.postgres.start()
    at.connectors.rest.restart_failed(name)
    at.wait_for_rows("the rows after Postgres' crash")


def story(random_: random.Random, entries: int) -> Iterator[list[Outgoing]]:
    """Yield stretches of a wait topic in which ids are registered, resolved and registered again, all mixed up."""
    ids = [new_id() for _ in range(entries // 4)]
    while True:
        chosen = [random_.randrange(len(ids)) for _ in range(entries)]
        yield [
            wait_record(ids[n], n % PARTITIONS) if random_.random() < 0.6 else tombstone(ids[n], n % PARTITIONS)
            for n in chosen
        ]
