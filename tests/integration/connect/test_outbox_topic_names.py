"""P8: a row whose dead letter has no valid topic stays in the table, as with our sweeper, and blocks no other."""

from __future__ import annotations

import pytest
from psycopg.rows import dict_row

from sweeper.due import QUERIES, due_row
from sweeper.export_decision import Outgoing, Policy, outgoing
from tests.integration.connect.outbox import Connection, fill, places, register
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.targets import Target
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


@pytest.mark.parametrize("template", ["dlq", "{group}", "{topic}", "{topic}.{group}.dlq", "dlq.{group}"])
def test_the_outbox_has_the_rows_that_our_sweeper_would_export(
    outbox_settings: Settings, outbox: Connection, template: str
) -> None:
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
    letters = settings.dead_letter.model_copy(update={"topic": template})
    policy = Policy.of(settings.model_copy(update={"dead_letter": letters}))
    ids = [f"w{number}" for number in range(len(ROWS))]
    rows = outbox.cursor(row_factory=dict_row).execute(QUERIES["due_rows"], {"ids": ids}).fetchall()
    found = [outgoing(due_row(row), policy, _any_topic_that_can_be, 0) for row in rows]
    return {letter.wait_id for letter in found if isinstance(letter, Outgoing)}


def _any_topic_that_can_be(topic: str) -> Target:
    try:
        # Without braces in it this is the question whether Kafka takes the name.
        dead_letter_topic(topic.replace("{", " "), "", "")
    except ConfigurationError as refused:
        return Target(topic, 0, 0, str(refused))
    return Target(topic, 1, 2**31)
