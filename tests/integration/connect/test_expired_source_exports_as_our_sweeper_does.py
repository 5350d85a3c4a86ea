"""P5: a Kafka Connect source over the outbox writes the dead letters that our sweeper would, and their tombstones."""

from __future__ import annotations

import os
import zlib
from contextlib import closing
from dataclasses import replace

import pytest
from psycopg.rows import dict_row

from sweeper.due import QUERIES
from tests.integration.connect.exporting import Exporting, as_the_sweeper_would, published
from tests.integration.connect.golden_corpus import Corpus
from tests.integration.sink.applying import PARTITIONS, HandFed, row_in_the_log, row_of
from tests.integration.sink.wait_topic import in_ms
from tests.support.database import Database
from tests.support.topics import Topics
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.root import Settings


@pytest.mark.guarantee("C.5")
def test_every_shape_of_registration_is_exported_as_by_our_sweeper(
    exporting: Exporting, topics: Topics, database: Database
) -> None:
    settings = exporting.settings
    standing = expired_rows(settings, database)
    expected = as_the_sweeper_would(standing, settings)
    exporting.start()
    exporting.start("expired.tombstones")

    dead_letters = {topic for topic, *_ in expected}
    exporting.wait_until(
        lambda: sum(len(topics.read(topic)) for topic in dead_letters) >= len(expected), "all dead letters"
    )
    letters = [letter for topic in dead_letters for letter in topics.read(topic)]
    assert sorted(map(published, letters), key=repr) == sorted(expected, key=repr)
    assert topics.read(settings.wait.topic) == [], "a tombstone went before its dead letter was known to be in the log"

    with closing(HandFed(settings, settings.dead_letter.topic, dead_letters=True)) as viewed:
        viewed.feed([row_in_the_log(letter) for letter in letters])
    exporting.wait_until(lambda: len(topics.read(settings.wait.topic)) >= len(standing), "all tombstones")
    tombstones = topics.read(settings.wait.topic)
    assert {(record.value, record.headers) for record in tombstones} == {
        (None, tuple(tombstone_headers(Outcome.EXPIRED)))
    }
    assert sorted((record.key, record.partition) for record in tombstones) == sorted(
        (str(row["wait_expiration_uuid"]).encode(), row["wait_partition"]) for row in standing
    )


def expired_rows(settings: Settings, database: Database) -> list[dict[str, object]]:
    """Fill `wait` with every shape of registration, all expired, as our sink does; return its rows."""
    corpus = Corpus(settings.dead_letter.topic, in_ms(-60))
    with closing(HandFed(settings, settings.wait.topic)) as viewed:
        # Too large for a page of Postgres, and for a producer with its default limit.
        large = corpus.plain("large", value=os.urandom(1_500_000))
        log = [replace(one, partition=zlib.crc32(one.key or b"") % PARTITIONS) for one in [*corpus.log(), large]]
        viewed.feed([replace(row_of(record, offset), topic=viewed.topic) for offset, record in enumerate(log)])
    with database.connect(settings) as connection:
        # Without a position of our sink every row is due.
        connection.execute("delete from sink_progress")
        ids = [wait_id for (wait_id,) in connection.execute("select wait_expiration_uuid from wait").fetchall()]
        rows: list[dict[str, object]] = (
            connection.cursor(row_factory=dict_row).execute(QUERIES["due_rows"], {"ids": ids}).fetchall()
        )
    assert len(rows) > 35
    return rows
