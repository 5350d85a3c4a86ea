"""P8: a row whose dead letter has nowhere to go stays in the table, as with our sweeper, and holds no other up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.rows import dict_row

from sweeper.due import QUERIES, due_row
from sweeper.outgoing import Outgoing, Policy, outgoing
from sweeper.targets import Target
from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import Connection, fill, places, register
from tests.support.database import Database
from wait_registry.errors import ConfigurationError
from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.settings.root import Settings

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


@pytest.fixture
def settings(settings_for: SettingsFactory, database: Database) -> Settings:
    made = settings_for()
    database.install(made)
    return made


@pytest.fixture
def connection(settings: Settings, database: Database) -> Iterator[Connection]:
    with database.connect(settings) as opened:
        yield opened


@pytest.mark.parametrize("template", ["dlq", "{group}", "{topic}", "{topic}.{group}.dlq", "dlq.{group}"])
def test_in_the_outbox_is_what_our_sweeper_would_find_a_topics_name_for(
    settings: Settings, connection: Connection, template: str
) -> None:
    for number, (letters, topic, group) in enumerate(ROWS):
        register(connection, f"w{number}", 0, number)
        connection.execute(
            "update wait set dead_letter_topic = %s, original_topic = %s, consumer_group = %s where wait_offset = %s",
            (letters, topic, group, number),
        )
    exported = exported_by_our_sweeper(settings, connection, template)
    assert 0 < len(exported) < len(ROWS)
    assert fill(connection, letters=template) == len(exported)
    assert {wait_id for wait_id, _, _ in places(connection)} == exported


def exported_by_our_sweeper(settings: Settings, connection: Connection, template: str) -> set[str]:
    """Return the ids of the rows that it would export with a broker that has every topic that can be."""
    letters = settings.dead_letter.model_copy(update={"topic": template})
    policy = Policy.of(settings.model_copy(update={"dead_letter": letters}))
    ids = [f"w{number}" for number in range(len(ROWS))]
    rows = connection.cursor(row_factory=dict_row).execute(QUERIES["due_rows"], {"ids": ids}).fetchall()
    found = [outgoing(due_row(row), policy, _any_topic_that_can_be, 0) for row in rows]
    return {letter.wait_id for letter in found if isinstance(letter, Outgoing)}


def _any_topic_that_can_be(topic: str) -> Target:
    try:
        # Without braces in it this is the question whether Kafka takes the name.
        dead_letter_topic(topic.replace("{", " "), "", "")
    except ConfigurationError as refused:
        return Target(topic, 0, 0, str(refused))
    return Target(topic, 1, 2**31)
