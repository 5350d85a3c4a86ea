"""The metrics of dead letters and redrives: what is counted, and that a large table is counted through indexes.

The rules of alerts count the same table.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from sweeper.alerts.counting import count_query
from sweeper.counted_metrics import BOUNDS, MOST_SERIES, QUERIES, read_counted_metrics
from sweeper.counted_metrics_watch import CountedMetricsWatch
from tests.integration.queries.plan import Plan, nodes_of
from tests.integration.sweeper.conftest import Tables
from tests.support.database import own_tables
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.alerts import AlertRule
from wait_registry.settings.tree import Settings
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.metrics import Metric

INSERT = """
insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, error_class, wait_expiration_uuid,
                         consumer_group, state)
values (%s, 0, (select count(*) from dead_letter), now() - %s::interval, %s, %s, %s, %s, %s)
"""
OPERATION = """
insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed,
    target, rate, ends, expected, counts, changed_at, changed_by
)"""
MARKED = """
insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, next_wait_id, marked_at, marked_by
)"""
JOB = f"""
{OPERATION}
values (%s, %s, 'payments', %s, now(), 'anna', false, 'command', '', '{{}}', '{{}}', 'redelivery', 1, '{{}}',
        '{{}}', %s, now() - %s::interval, 'anna')
"""
MARK = f"""
{MARKED}
values ((select count(*) from dead_letter_mark), 'j', 'redrive', 'redriven', 'w', 1, 'payments', %s,
        now() - %s::interval, 'anna')
"""
WAITING = """
insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
values (%s, 'orders', now(), 'wait', 0, 0)
"""
ROWS = 300_000
LARGE = f"""
insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, error_class, wait_expiration_uuid,
                         consumer_group, body, state, created_at)
    select 'dlq-' || n %% 3, 0, n, at, 'failed', 'Error' || n %% 50, n::text, 'group-' || n %% 7,
           convert_to(repeat(md5(n::text), 20), 'UTF8'), case when n %% 10 = 0 then 'open' else 'redriven' end, at
    from generate_series(1, {ROWS}) n, lateral (select now() - make_interval(secs => n * 5)) as t (at);
{MARKED}
    select n, 'job-' || n, 'redrive', 'redriven', n::text, 1, 'g', n::text, now() - make_interval(secs => n), 'anna'
    from generate_series(1, 100000) n;
{OPERATION}
    select
        'job-' || n, 'redrive', 'g', case when n = 1 then 'running' else 'finished' end, now(), 'anna', false,
        'command', '', '{{}}', '{{}}', 'redelivery', 1, '{{}}', '{{}}', '{{"redriven": 3}}',
        now() - make_interval(mins => n), 'anna'
    from generate_series(1, 50000) n;
insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
    select (n + 1000000)::text, 'orders', now(), 'wait', 0, n from generate_series(1, 100000) n;
"""


def values(readings: list[Reading], metric: Metric) -> dict[tuple[str, ...], float]:
    return {each.labels: each.value for each in readings if each.metric is metric}


def dead_letter(
    tables: Tables,
    age: str,
    error: str | None,
    *,
    topic: str = "dlq",
    wait_id: str = "w",
    group: str | None = "payments",
    state: str = "open",
) -> None:
    reason = None if group is None else "expired" if error is None else "failed"
    tables.execute(INSERT.encode(), (topic, age, reason, error, wait_id, group, state))


def test_open_dead_letters_are_counted_by_group_topic_and_reason(tables: Tables) -> None:
    for age, error, options in (
        ("1 hour", "ValueError", {}),
        ("2 days", "ValueError", {}),
        ("3 days", None, {}),
        ("9 days", "ValueError", {"state": "redriven"}),
        ("9 days", "ValueError", {"state": "archived"}),
        ("1 minute", "ValueError", {"topic": "other"}),
        ("1 minute", None, {"group": None}),
    ):
        dead_letter(tables, age, error, **options)
    readings = read_counted_metrics(tables, "waitreg.operations")
    assert values(readings, m.DEAD_LETTERS_OPEN) == {
        ("payments", "dlq", "failed"): 2,
        ("payments", "dlq", "expired"): 1,
        ("payments", "other", "failed"): 1,
        ("", "dlq", "foreign"): 1,
    }
    ages = values(readings, m.DEAD_LETTER_OLDEST_OPEN)
    assert ages["payments", "dlq"] == pytest.approx(3 * 86_400, abs=600)
    assert ages["", "dlq"] == pytest.approx(60, abs=600)


def test_an_error_class_is_new_when_a_week_has_not_had_it(tables: Tables) -> None:
    for error, ages in {
        "Known": ["10 minutes", "6 days"],
        "New": ["10 minutes", "20 minutes"],
        "Again": ["10 minutes", "8 days"],
        "Old": ["2 hours"],
    }.items():
        for age in ages:
            dead_letter(tables, age, error)
    dead_letter(tables, "10 minutes", "Known", topic="other")
    dead_letter(tables, "6 days", "New", group="another")
    dead_letter(tables, "10 minutes", "New", state="redriven")
    readings = read_counted_metrics(tables, "waitreg.operations")
    assert values(readings, m.DEAD_LETTER_NEW_ERROR_CLASSES) == {("payments", "dlq"): 2, ("payments", "other"): 1}
    assert values(readings, m.DEAD_LETTERS_OF_NEW_ERROR_CLASSES) == {("payments", "dlq"): 4, ("payments", "other"): 1}


def test_redrives_are_counted_by_category_outcome_and_state(tables: Tables) -> None:
    for job in (
        ("a", "redrive", "running", '{"redriven": 3, "no_members": 1}', "7 minutes"),
        ("b", "redrive", "paused", '{"redriven": 4}', "5 days"),
        ("c", "redrive", "finished", '{"redriven": 5}', "2 hours"),
        ("f", "redrive", "awaiting", "{}", "3 days"),
        ("d", "archive", "finished", '{"archived": 6}', "2 hours"),
        ("e", "redrive", "finished", '{"redriven": 7}', "2 days"),
    ):
        tables.execute(JOB.encode(), job)
    for next_wait_id, age in (("waiting", "1 minute"), ("back", "1 minute"), ("gone", "1 minute"), ("back", "2 hours")):
        tables.execute(MARK.encode(), (next_wait_id, age))
    tables.execute(WAITING.encode(), ("waiting",))
    dead_letter(tables, "1 minute", "ValueError", wait_id="back")
    tables.execute(
        "insert into sink_progress values ('waitreg.operations', 'id', 0, 7, now() - interval '90 s', now())"
    )
    readings = read_counted_metrics(tables, "waitreg.operations")
    assert values(readings, m.REDRIVE_RECORDS) == {("redriven",): 8, ("no_members",): 1}
    assert values(readings, m.REDRIVE_OUTCOMES) == {
        ("payments", "waiting"): 1,
        ("payments", "dead_letter"): 1,
        ("payments", "other"): 1,
    }
    jobs = {("awaiting",): 1, ("running",): 1, ("paused",): 1, ("finished",): 2, ("cancelled",): 0}
    assert values(readings, m.REDRIVE_JOBS) == jobs
    assert values(readings, m.REDRIVE_LONGEST_SILENCE)[()] == pytest.approx(420, abs=60)
    assert values(readings, m.OPERATIONS_STALENESS)[()] == pytest.approx(90, abs=60)


def test_the_number_of_series_is_bounded(tables: Tables) -> None:
    for number in range(MOST_SERIES + 5):
        dead_letter(tables, "1 minute", "ValueError", group=f"group-{number}")
    tables.execute("update dead_letter set consumer_group = repeat('x', 900) where consumer_group = 'group-0'")
    counts = values(read_counted_metrics(tables, "waitreg.operations"), m.DEAD_LETTERS_OPEN)
    assert len(counts) == MOST_SERIES + 1
    assert counts["others", "others", "others"] == 4


def test_a_failed_reading_leaves_no_old_numbers(settings: Settings, tables: Tables) -> None:
    dead_letter(tables, "1 minute", "ValueError")
    connections, registry = OpenConnections(), MetricsRegistry()
    watch = CountedMetricsWatch(settings, connections, now=lambda: 1_700_000_000.0)
    watch.expose(registry)

    def shown() -> tuple[float | None, float | None]:
        labels = {"consumer_group": "payments", "topic": "dlq", "reason": "failed"}
        sample = registry.prometheus.get_sample_value
        return sample(m.DEAD_LETTERS_READ.name), sample(m.DEAD_LETTERS_OPEN.name, labels)

    assert shown() == (0.0, None)
    watch.read_once()
    assert shown() == (1_700_000_000.0, 1.0)
    connections.give_up()
    watch.read_once()
    assert shown() == (1_700_000_000.0, None)


@pytest.fixture(scope="module")
def large(stack: Stack) -> Iterator[Tables]:
    """Dead letters of 17 days, a tenth of them open; marks of a day; jobs of a month."""
    with own_tables(stack) as (_, connection):
        with psycopg.ClientCursor(connection) as cursor:
            cursor.execute(LARGE.replace("%%", "%").encode())
        connection.execute("vacuum analyze dead_letter, dead_letter_mark, operation, wait")

        def seen_by_all() -> bool:
            connection.execute("vacuum dead_letter")
            query = b"select relallvisible >= relpages * 0.9 from pg_class where oid = 'dead_letter'::regclass"
            return connection.execute(query).fetchone() == (True,)

        # A snapshot of another test keeps old rows, and then no plan reads an index alone.
        wait_until(seen_by_all, what="rows that all see")
        connection.execute("set max_parallel_workers_per_gather to 0")
        yield connection


# Which tables a query reads, through which indexes, and how many of their rows at most.
PLANS: dict[str, tuple[set[str], int]] = {
    "open_dead_letters": ({"dead_letter_backlog"}, ROWS // 10),
    "new_error_classes": ({"dead_letter_error"}, 5_000),
    "redrive_categories": ({"operation_age"}, 1_500),
    "redrive_outcomes": ({"dead_letter_mark_age", "wait_pkey", "dead_letter_wait"}, 11_500),
    "jobs": ({"operation_unfinished", "operation_age"}, 1_500),
    "longest_silence": ({"operation_unfinished"}, 1_500),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_large_table_is_counted_through_indexes(large: Tables, name: str) -> None:
    indexes, most_rows = PLANS[name]
    plan = within(large, QUERIES[name], {**BOUNDS, "operations_topic": "o"}, indexes, most_rows)
    assert plan.nodes[0]["Actual Rows"] > 0 or name == "new_error_classes"


# What a rule of alerts means, and as above.
RULES: dict[str, tuple[dict[str, Any], set[str], int]] = {
    "of a group that are open": ({"filter": ["group=group-1", "state=open"]}, {"dead_letter_open"}, ROWS // 10),
    "of a window": ({"filter": ["error=Error1*"], "window": "10m"}, {"dead_letter_time"}, 1_000),
    "of both": ({"filter": ["group=group-1", "state=open"], "window": "1h"}, {"dead_letter_open"}, 1_000),
}


@pytest.mark.parametrize("name", RULES)
def test_an_alert_rule_is_evaluated_through_an_index(large: Tables, name: str) -> None:
    changes, indexes, most_rows = RULES[name]
    query, parameters = count_query(AlertRule.model_validate({"name": "x", **changes}), datetime.now(UTC))
    within(large, query, parameters, indexes, most_rows)


def within(large: Tables, query: str, parameters: Any, indexes: set[str], most_rows: int) -> Plan:
    """Return the plan of a query that scans no table, uses these indexes and looks at so few rows."""
    row = large.execute(f"explain (analyze, buffers, timing off, format json) {query}".encode(), parameters).fetchone()
    assert row is not None
    plan = Plan(list(nodes_of(row[0][0]["Plan"])))
    tables = {"dead_letter", "dead_letter_mark", "operation", "wait"}
    scans = [node for node in plan.nodes if node.get("Relation Name") in tables or "Index Name" in node]
    assert [node["Node Type"] for node in scans if node["Node Type"] == "Seq Scan"] == []
    assert {node["Index Name"] for node in scans if "Index Name" in node} == indexes
    looked_at = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans
    )
    assert looked_at <= most_rows
    return plan


def test_every_query_but_that_of_the_position_has_a_plan() -> None:
    assert {*PLANS, "operations_staleness"} == set(QUERIES.names())


def test_open_dead_letters_are_counted_without_their_rows(large: Tables) -> None:
    row = large.execute(f"explain (format json) {QUERIES['open_dead_letters']}".encode()).fetchone()
    assert row is not None
    kinds = {node["Node Type"] for node in nodes_of(row[0][0]["Plan"])}
    assert "Index Only Scan" in kinds and "Sort" not in kinds
