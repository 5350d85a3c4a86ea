"""What runs with every batch finds its rows by an index, however many rows there are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink.progress import QUERIES, Connection
from tests.conftest import SettingsFactory
from tests.support.database import Database
from wait_registry.settings.root import Settings

ROWS = 200_000

FILL = f"""
    insert into wait (
        wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
    select md5(i::text)::uuid::text, 'orders', now(), 'wait', i % 8, i from generate_series(1, {ROWS}) as i;
    insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid)
    select 'dlq', 0, i, case when i % 2 = 0 then 'expired' else 'failed' end, md5(i::text)::uuid::text
    from generate_series(1, {ROWS}) as i;
    insert into late_outcome (wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset)
    select md5(i::text)::uuid::text, 'done', 'wait', 0, i from generate_series(1, {ROWS}) as i;
    analyze wait; analyze dead_letter; analyze late_outcome;
    insert into staged_tombstone
    select md5(i::text)::uuid::text, i % 8, i + 1, i + 1, now(), 'done', true, true, true, null
    from generate_series(1, 100) as i;
    insert into staged_dead_letter (topic, partition, "offset", reason, wait_expiration_uuid)
    select 'dlq', 0, i, 'expired', md5(i::text)::uuid::text from generate_series(1, 100) as i;
    insert into staged_wait select * from wait where wait_offset <= 100;
    analyze staged_tombstone; analyze staged_dead_letter; analyze staged_wait;
"""


# As in a batch of a busy sink: nearly all tombstones are of registrations that never became rows.
ABSENT = """
    insert into staged_tombstone
    select md5('absent ' || i)::uuid::text, i % 8, i + 1, i + 1, now(), 'done', false, true, true, null
    from generate_series(1, 60_000) as i;
    analyze staged_tombstone;
"""


def scanned(plan: dict[str, Any]) -> set[str]:
    """Return the tables that a plan reads from beginning to end."""
    own = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return own.union(*(scanned(part) for part in plan.get("Plans", [])))


@pytest.fixture
def filled(prepared: SettingsFactory, database: Database) -> Settings:
    return prepared()


def test_no_statement_of_a_batch_reads_a_whole_table(filled: Settings, database: Database) -> None:
    statements: dict[str, dict[str, Any]] = {
        name: {"topic": "wait"}
        for name in ("settle", "mark_by_tombstones", "mark_by_dead_letters", "upsert_waits", "upsert_dead_letters")
    }
    statements["rename_dead_letters"] = {"topic": "dlq", "kept": "dlq@id", "partition": 0, "first": 1, "beyond": 10_001}
    with database.connect(filled) as connection, connection.transaction():
        connection.execute(QUERIES["stage"])
        connection.execute(FILL.encode())
        for name, parameters in statements.items():
            whole = scanned(plan(connection, name, parameters)) & {"wait", "dead_letter", "late_outcome"}
            assert not whole, f"{name} reads all of {whole}"


def test_a_batch_of_many_tombstones_looks_each_of_them_up(filled: Settings, database: Database) -> None:
    with database.connect(filled) as connection, connection.transaction():
        connection.execute(QUERIES["stage"])
        connection.execute(FILL.encode())
        connection.execute(ABSENT.encode())
        assert "wait" not in scanned(plan(connection, "settle", {"topic": "wait"}))


def plan(connection: Connection, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return how Postgres would do a statement."""
    used = parameters if "%(topic)s" in QUERIES[name] else None
    row = connection.execute(b"explain (format json) " + QUERIES[name].encode(), used).fetchone()
    assert row is not None
    document = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return dict(document[0]["Plan"])
