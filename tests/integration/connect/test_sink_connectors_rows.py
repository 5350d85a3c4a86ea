"""P5: a Kafka Connect sink with our plugin writes the rows that our own sink writes, and refuses the same records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.families import SinkFamily
from tests.integration.connect.rows import as_row, wait_places
from tests.integration.sink.applying import PARTITIONS, HandFed
from tests.integration.sink.wait_topic import in_ms
from tests.support.connect_connectors import Connectors
from tests.support.connect_dead_letters import dead_letters
from tests.support.database import Database
from tests.support.golden_corpus import Corpus, in_log_order, odd_names
from tests.support.kafka_io import Headers, Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

Place = tuple[int, int]
# What a sink's role needs, by connect-configs/README.md.
RIGHTS = "grant usage on schema {0} to {1}; grant select, insert, update{2} on {0}.{3} to {1}"
# How a reader without our code sees a row: JSON, with bytes in hexadecimal digits. What is finished late isn't in a
# dead letter: our sink finds it out, a connector doesn't.
ROWS = """
select to_jsonb(t) - '{created_at,finished_late,finished_outcome,finished_time}'::text[] as row from %s t order by row
"""


@pytest.fixture
def role(database: Database, names: Names) -> Iterator[str]:
    """A role of Postgres with no rights of its own."""
    name = f"{names.schema}_sink"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"create role {name} login".encode())
        yield name
        connection.execute(f"drop owned by {name}; drop role {name}".encode())


@pytest.mark.guarantee("C.5")
def test_wait_records_of_every_shape_become_the_same_rows(
    sink_family: SinkFamily,
    connectors: Connectors,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    names: Names,
    role: str,
) -> None:
    settings = prepared({"wait.partitions": PARTITIONS, "connect.postgres_url": url_of(role, database)})
    grant(database, RIGHTS.format(names.schema, role, ", delete", "wait"))
    corpus = Corpus(settings.dead_letter.topic, in_ms(600))
    malformed = sink_family.malformed(corpus)
    entries = in_log_order([*corpus.registrations(), *odd_names(corpus), *malformed])
    topics.produce(settings.wait.topic, [*(entry.outgoing for entry in entries), *with_doubled_headers(corpus)])
    log = topics.read(settings.wait.topic)
    topics.delete_at_end(unreadable := f"{settings.wait.topic}.unreadable")

    ours = settings_of_ours(settings, names, database)
    with closing(HandFed(ours, settings.wait.topic)) as sink:
        sink.feed([as_row(record) for record in log])
    connectors.start(sink_family.file("wait.sink"), settings, **sink_family.changes)

    expected = rows(database, ours, "wait")
    assert len(expected) > 90
    wait_until(lambda: wait_places(database, settings) == wait_places(database, ours), what="the same rows")
    assert rows(database, settings, "wait") == expected
    if malformed:
        refused = database.rows(ours, 'select partition, "offset" from quarantine')
        assert len(refused) == len(malformed)
        wait_until(lambda: set(reported(topics, unreadable)) >= set(refused), what="all refused records reported")
        assert sorted(reported(topics, unreadable)) == sorted(refused)


def test_dead_letters_and_other_records_become_the_same_rows(
    sink_family: SinkFamily,
    connectors: Connectors,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    names: Names,
    role: str,
) -> None:
    settings = prepared({"dead_letter.partitions": PARTITIONS, "connect.postgres_url": url_of(role, database)})
    grant(database, RIGHTS.format(names.schema, role, "", "dead_letter"))
    topics.produce(settings.dead_letter.topic, [*dead_letters(PARTITIONS)])
    log = topics.read(settings.dead_letter.topic)

    ours = settings_of_ours(settings, names, database)
    with closing(HandFed(ours, settings.dead_letter.topic, dead_letters=True)) as sink:
        sink.feed([as_row(record) for record in log])
    connectors.start(sink_family.file("dead_letter.sink"), settings, **sink_family.changes)

    expected = rows(database, ours, "dead_letter")
    assert len(expected) == len(log)
    wait_until(lambda: len(rows(database, settings, "dead_letter")) >= len(log), what="all dead letters in the table")
    assert rows(database, settings, "dead_letter") == expected


def url_of(role: str, database: Database) -> str:
    """Return the address of Postgres for another role."""
    return (
        urlsplit(database.url)._replace(netloc=f"{role}@{database.url.rpartition('@')[2].partition('/')[0]}").geturl()
    )


def grant(database: Database, statements: str) -> None:
    """Give rights."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(statements.encode())


def with_doubled_headers(corpus: Corpus) -> Iterator[Outgoing]:
    """Yield two wait records and a tombstone with a header of the user twice, at which Debezium's sink would fail."""
    twice: Headers = (("hop", b"1"), ("hop", b"2"))
    for name in ("doubled headers, open", "doubled headers, resolved"):
        registration = corpus.plain(name)
        yield Outgoing(registration.value, registration.wait_id.encode(), (*registration.headers, *twice))
    yield Outgoing(None, registration.wait_id.encode(), twice)


def settings_of_ours(settings: Settings, names: Names, database: Database) -> Settings:
    """Return the same settings with a schema of their own, which is made."""
    postgres = settings.postgres.model_copy(update={"schema_name": f"{names.schema}_ours"})
    ours = settings.model_copy(update={"postgres": postgres})
    database.install(ours)
    return ours


def rows(database: Database, settings: Settings, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table but when they were made, in one order."""
    return [row for (row,) in database.rows(settings, ROWS % table)]


def reported(topics: Topics, topic: str) -> list[Place]:
    """Return where the records that a connector refused came from."""
    if topic not in topics.admin.list_topics(timeout=15).topics:
        return []
    context = "__connect.errors"
    return [
        (int(record.text(f"{context}.partition")), int(record.text(f"{context}.offset")))
        for record in topics.read(topic)
    ]
