"""P5: a Kafka Connect sink with our plugin writes the rows that our own sink writes, and refuses the same records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.integration.connect.dead_letters import dead_letters
from tests.integration.connect.golden_corpus import ODD_NAMES, Corpus
from tests.integration.connect.sinking import Sinking, SinkingFactory
from tests.integration.sink.applying import PARTITIONS, HandFed, row_in_the_log
from tests.integration.sink.wait_topic import in_ms, rows_of
from tests.support.database import Database
from tests.support.kafka_io import Headers, Outgoing, ReadRecord
from tests.support.naming import Names
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

# What a sink's role needs, by connect-configs/README.md.
RIGHTS = "grant usage on schema {0} to {1}; grant select, insert, update{2} on {0}.{3} to {1}"
# How a reader without our code sees a row: JSON, with bytes in hexadecimal digits. What is finished late isn't in a
# dead letter: our sink finds it out, a connector doesn't.
ROWS = """
select to_jsonb(t) - '{created_at,finished_late,finished_outcome,finished_time}'::text[] as row from %s t order by row
"""


@pytest.fixture
def role(database: Database, names: Names) -> Iterator[str]:
    """A role of Postgres with no permissions of its own."""
    name = f"{names.schema}_sink"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"create role {name} login".encode())
        yield name
        connection.execute(f"drop owned by {name}; drop role {name}".encode())


@pytest.mark.guarantee("C.5", "C.8")
def test_wait_records_of_any_shape_become_the_same_rows(sinking: SinkingFactory, database: Database, role: str) -> None:
    at = sinking({"wait.partitions": PARTITIONS, "connect.postgres_url": url_of(role, database)})
    grant(at, role, ", delete", "wait")
    corpus = Corpus(at.settings.dead_letter.topic, in_ms(600))
    malformed = corpus.malformed()
    at.topics.produce(at.log.name, [*malformed, *corpus.log(ODD_NAMES), *with_doubled_headers(corpus)])
    ours = written_by_ours(at, at.topics.read(at.log.name))
    at.start()
    expected = rows(database, ours, "wait")
    assert len(expected) > 35
    wait_until(lambda: at.rows() == rows_of(database, ours), what="the same rows")
    assert rows(database, at.settings, "wait") == expected
    refused = database.rows(ours, 'select partition, "offset" from quarantine')
    assert len(refused) == len(malformed)
    wait_until(lambda: set(reported(at)) >= set(refused), what="all refused records reported")
    assert sorted(reported(at)) == sorted(refused)


def test_dead_letters_and_others_become_the_same_rows(sinking: SinkingFactory, database: Database, role: str) -> None:
    at = sinking({"dead_letter.partitions": PARTITIONS, "connect.postgres_url": url_of(role, database)})
    grant(at, role, "", "dead_letter")
    topic = at.settings.dead_letter.topic
    at.topics.produce(topic, [*dead_letters(PARTITIONS)])
    ours = written_by_ours(at, log := at.topics.read(topic), dead_letters=True)
    at.start("dead_letter.sink")
    expected = rows(database, ours, "dead_letter")
    assert len(expected) == len(log)
    wait_until(lambda: len(rows(database, at.settings, "dead_letter")) >= len(log), what="all dead letters")
    assert rows(database, at.settings, "dead_letter") == expected


def url_of(role: str, database: Database) -> str:
    """Return the address of Postgres for another role."""
    server = database.url.rpartition("@")[2].partition("/")[0]
    return urlsplit(database.url)._replace(netloc=f"{role}@{server}").geturl()


def grant(at: Sinking, role: str, more: str, table: str) -> None:
    """Give a role what the documentation says, with these further permissions on a table."""
    with psycopg.connect(at.database.url, autocommit=True) as connection:
        connection.execute(RIGHTS.format(at.settings.postgres.schema_name, role, more, table).encode())


def written_by_ours(at: Sinking, log: Sequence[ReadRecord], *, dead_letters: bool = False) -> Settings:
    """Return settings with a further schema, whose tables our sink has filled from a log."""
    ours = changed(at.settings, "postgres", schema_name=f"{at.settings.postgres.schema_name}_ours")
    at.database.install(ours)
    topic = ours.dead_letter.topic if dead_letters else ours.wait.topic
    with closing(HandFed(ours, topic, dead_letters=dead_letters)) as sink:
        sink.feed([row_in_the_log(record) for record in log])
    return ours


def with_doubled_headers(corpus: Corpus) -> Iterator[Outgoing]:
    """Yield two wait records and a tombstone with a header of the user twice, at which Debezium's sink would fail."""
    twice: Headers = (("hop", b"1"), ("hop", b"2"))
    for name in ("doubled headers, open", "doubled headers, resolved"):
        wait = corpus.plain(name)
        yield replace(wait, headers=(*wait.headers, *twice))
    yield Outgoing(None, wait.key, twice)


def rows(database: Database, settings: Settings, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table but when they were made, in one order."""
    return [row for (row,) in database.rows(settings, ROWS % table)]


def reported(at: Sinking) -> list[tuple[int, int]]:
    """Return where the records that the connector refused came from."""
    context = "__connect.errors"
    return [(int(one.text(f"{context}.partition")), int(one.text(f"{context}.offset"))) for one in at.refused()]
