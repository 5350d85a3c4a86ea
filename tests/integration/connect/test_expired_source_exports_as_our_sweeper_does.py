"""P5, P8: a Kafka Connect source over the outbox exports what our sweeper would, and nothing else."""

from __future__ import annotations

import os
import zlib
from contextlib import closing
from dataclasses import replace

import pytest
from psycopg.rows import dict_row

from sweeper.due import QUERIES, due_row
from sweeper.export_decision import Outgoing, outgoing
from tests.integration.connect.exporting import Exporting, as_the_sweeper_would, published
from tests.integration.connect.golden_corpus import Corpus
from tests.integration.connect.outbox import Connection, fill, places, register
from tests.integration.sink.applying import PARTITIONS, HandFed, row_in_the_log, row_of
from tests.integration.sink.wait_topic import in_ms
from tests.support.database import Database
from tests.support.settings import changed
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.targets import Target
from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.tree import Settings


@pytest.mark.guarantee("C.5")
def test_every_shape_is_exported_as_by_our_sweeper(exporting: Exporting, topics: Topics, database: Database) -> None:
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


# Topic of the dead letter, input topic and group as the row has them.
Named = tuple[str | None, str, str | None]
ROWS: tuple[Named, ...] = (
    ("dlq", "orders", None),
    (None, "orders", "shop"),
    (None, "orders", None),
    (None, "orders", "a group"),
    (None, "orders", "{topic}"),
    (None, "no topic's name", "shop"),
    (None, "{group}", "shop"),
    (None, "o" * 249, "shop"),
    (None, "o" * 249, "a" * 100),
    ("", "orders", "shop"),
    ("two words", "orders", "shop"),
    ("{topic}.dlq", "orders", "shop"),
    ("dlq\n", "orders", "shop"),
    ("\u00e9", "orders", "shop"),
    (".", "orders", "shop"),
    ("..", "orders", "shop"),
    ("...", "orders", "shop"),
    ("d" * 249, "orders", "shop"),
    ("d" * 250, "orders", "shop"),
    ("A-z_0.9", "orders", "shop"),
)


@pytest.mark.parametrize("template", ["dlq", "{group}", "{topic}", "{topic}.{group}.dlq", "dlq.{group}"])
def test_the_outbox_has_what_our_sweeper_exports(outbox_settings: Settings, outbox: Connection, template: str) -> None:
    for number, (letters, topic, group) in enumerate(ROWS):
        register(outbox, f"w{number}", 0, number)
        outbox.execute(
            "update wait set dead_letter_topic = %s, original_topic = %s, consumer_group = %s where wait_offset = %s",
            (letters, topic, group, number),
        )
    exported = exported_by_our_sweeper(outbox_settings, outbox, template)
    assert 0 < len(exported) < len(ROWS)
    assert fill(outbox, letters=template) == len(exported)
    assert {wait_id for wait_id, _, _ in places(outbox)} == exported


def exported_by_our_sweeper(settings: Settings, outbox: Connection, template: str) -> set[str]:
    """Return the ids of the rows that it would export with a broker that has every topic that can be."""
    ours = changed(settings, "dead_letter", topic=template)
    ids = [f"w{number}" for number in range(len(ROWS))]
    rows = outbox.cursor(row_factory=dict_row).execute(QUERIES["due_rows"], {"ids": ids}).fetchall()
    found = [outgoing(due_row(row), ours, _any_topic_that_can_be, 0) for row in rows]
    return {letter.wait_id for letter in found if isinstance(letter, Outgoing)}


def _any_topic_that_can_be(topic: str) -> Target:
    try:
        # Without braces in it this is the question whether Kafka takes the name.
        dead_letter_topic(topic.replace("{", " "), "", "")
    except ConfigurationError as refused:
        return Target(topic, 0, 0, str(refused))
    return Target(topic, 1, 2**31)
