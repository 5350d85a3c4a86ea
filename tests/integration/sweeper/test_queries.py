"""The sweeper's questions stay cheap on a large table: every plan goes through an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sweeper import connect_policy as sweeping
from sweeper.due import QUERIES, find_due
from sweeper.housekeeping import TABLES
from tests.integration.queries.plan import nodes_of
from tests.support.database import own_tables
from tests.support.stack import Stack
from wait_registry.postgres.queries import Queries
from wait_registry.settings.tree import Settings

Large = tuple[Settings, psycopg.Connection[Any]]
ROWS = 1_000_000
FILL = f"""
insert into wait (wait_expiration_uuid, original_topic, original_headers, wait_expiration_time, wait_topic,
                  wait_partition, wait_offset)
    select '00000000-0000-8000-8000-' || lpad(n::text, 12, '0'), 'orders', '[]',
           now() + make_interval(secs => 3600 + n / 300), %s, n %% 8, n
    from generate_series(1, {ROWS}) n
"""


def aged(rows: int, step: str) -> str:
    """Return the statements that fill each aging table with rows that are older and older."""
    return f"""
insert into dead_letter (topic, partition, "offset", created_at)
    select 'dlq', 0, n, now() - n * interval '{step}' from generate_series(1, {rows}) n;
insert into quarantine (topic, partition, "offset", error, created_at)
    select 'wait', 0, n, 'broken', now() - n * interval '{step}' from generate_series(1, {rows}) n;
insert into late_outcome (wait_expiration_uuid, wait_topic, wait_partition, wait_offset, created_at)
    select n::text, 'wait', 0, n, now() - n * interval '{step}' from generate_series(1, {rows}) n;
insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, marked_at, marked_by
)
    select n, 'job-' || n, 'redrive', 'redriven', n::text, 1, 'g', now() - n * interval '{step}', 'anna'
    from generate_series(1, {rows}) n;
insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed,
    target, rate, ends, expected, changed_at, changed_by
)
    select
        'job-' || n, 'redrive', 'g', 'finished', now(), 'anna', false, 'command', '', '{{}}', '{{}}', 'redelivery', 1,
        '{{}}', '{{}}', now() - n * interval '{step}', 'anna'
    from generate_series(1, {rows}) n;
insert into operator_event ("offset", event, job, done_at, done_by, detail)
    select n, 'paused', 'job-' || n, now() - n * interval '{step}', 'anna', '' from generate_series(1, {rows}) n;
insert into sweep (wait_topic, started_at, duration_s, due, skipped, result)
    select 'wait', now() - n * interval '{step}', 0, 0, '[]', 'done'
    from generate_series(1, {rows}) n;
"""


@pytest.fixture(scope="module")
def large(stack: Stack) -> Iterator[Large]:
    """A million rows that aren't due, ten that are in partition 3, and twenty thousand of each aging table."""
    with own_tables(stack, {"wait.partitions": 8}) as (settings, connection):
        connection.execute(FILL, (settings.wait.topic,))
        connection.execute(aged(20_000, "30 s").encode())
        connection.execute(
            """
            update wait set wait_expiration_time = now() - interval '1 minute'
            where wait_expiration_uuid in (select wait_expiration_uuid from wait where wait_partition = 3 limit 10)
            """
        )
        tables = "dead_letter, quarantine, late_outcome, dead_letter_mark, operation, operator_event, sweep"
        connection.execute(f"vacuum analyze wait, {tables}".encode())
        yield settings, connection


def nodes(connection: psycopg.Connection[Any], query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all nodes of a query's plan."""
    row = connection.execute(f"explain (format json) {query}".encode(), parameters).fetchone()
    assert row is not None
    return list(nodes_of(row[0][0]["Plan"]))


def scans(plan: list[dict[str, Any]], table: str) -> set[tuple[str, str | None]]:
    """Return how a table is read, and through which index."""
    names = [(node["Node Type"], node.get("Index Name")) for node in plan if node.get("Relation Name") == table]
    names += [(node["Node Type"], node["Index Name"]) for node in plan if node["Node Type"] == "Bitmap Index Scan"]
    return set(names)


def question(settings: Settings, **more: object) -> dict[str, Any]:
    return {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s, "partition": 3, **more}


def test_the_question_what_is_due_reads_the_index_alone(large: Large) -> None:
    settings, connection = large
    plan = nodes(connection, QUERIES["due_partitions"], question(settings, partitions=8))
    assert scans(plan, "wait") == {("Index Only Scan", "wait_due")}
    due = find_due(connection, settings, 8)
    assert (due.partitions, due.rows) == ((3,), 10)


@pytest.mark.parametrize(
    ("queries", "name"), [(QUERIES, "due_count"), (QUERIES, "due_keys"), (sweeping.QUERIES, "due_places")]
)
def test_due_rows_are_found_through_the_index(large: Large, queries: Queries, name: str) -> None:
    settings, connection = large
    every: dict[str, dict[str, Any]] = {"due_count": {"partitions": [3]}, "due_places": {"limit": 2_000_001}}
    plan = nodes(connection, queries[name], question(settings, **every.get(name, {})))
    assert {index for _, index in scans(plan, "wait")} == {"wait_due"}


def test_rows_are_fetched_by_their_key(large: Large) -> None:
    _, connection = large
    ids = [str(number) for number in range(5_000)]
    plan = nodes(connection, QUERIES["due_rows"], {"ids": ids})
    assert {index for _, index in scans(plan, "wait") if index} == {"wait_pkey"}
    assert ("Seq Scan", None) not in scans(plan, "wait")


@pytest.mark.parametrize("table", TABLES)
def test_retention_deletes_through_indexes(large: Large, table: str) -> None:
    _, connection = large
    plan = nodes(connection, QUERIES[f"purge_{table}"], {"days": 5, "limit": 1_000})
    kinds = {kind for kind, _ in scans(plan, table)}
    assert "Seq Scan" not in kinds, kinds
    assert any("Index" in kind for kind in kinds), kinds
