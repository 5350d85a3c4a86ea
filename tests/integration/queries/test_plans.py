"""With a million rows standing and a million dead letters a look-up touches a few rows, a count reads a table once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.integration.queries.plan import Plan, executed
from tests.support.database import own_tables
from tests.support.stack import Stack
from wait_registry.dead_letters import listing
from wait_registry.dead_letters.counts import groups_query
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.postgres.query_file import bind, load_query, query_names
from wait_registry.records.operation import Place

ROWS = 1_000_000
FEWER = 100_000
OVERDUE, SOON = 1_000, 5_000
MAX_SORT_KB = 16_000

# A month of dead letters and sweeps; registrations of the last 28 hours, OVERDUE of them due, SOON of them in 5 hours.
FILL = [
    f"""
    insert into wait (
        wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_headers,
        wait_expiration_time, body, consumer_group, instance, delivery, expiry_policy, wait_topic, wait_partition,
        wait_offset, created_at, idempotency_key)
    select
        '00000000-0000-8000-8000-' || lpad(i::text, 12, '0'), 'orders-' || i % 3, i % 12, i / 12,
        convert_to('customer-' || i % 200000, 'UTF8'), '[["tenant", "YWNtZQ=="]]',
        now() + case
            when i <= {OVERDUE} then interval '-1 hour'
            when i <= {OVERDUE + SOON} then interval '5 hours'
            else interval '1 day' + make_interval(secs => i * 0.1) end,
        convert_to(md5(i::text), 'UTF8'), 'group-' || i % 4,
        'host-' || i % 16, 1, 'dlq', 'wait', i % 8, i, now() - make_interval(secs => ({ROWS} - i) * 0.1),
        '00000000-0000-8000-8000-' || lpad((i - i % 3)::text, 12, '0')
    from generate_series(1, {ROWS}) as i
    """,
    f"""
    insert into dead_letter (
        topic, partition, "offset", dead_letter_time, reason, error_class, error_message, wait_expiration_uuid,
        original_topic, original_partition, original_offset, consumer_group, instance, delivery, key, headers, body,
        finished_late, finished_time, created_at, idempotency_key)
    select
        'dlq', i % 4, i, at, case when i % 10 = 0 then 'expired' else 'failed' end,
        case when i % 100000 = 0 then 'RareError' else 'Error' || i % 3 end,
        'message ' || i % 5, '10000000-0000-8000-8000-' || lpad(i::text, 12, '0'), 'orders-' || i % 3, i % 12, i / 12,
        'group-' || i % 4, 'host-' || i % 16, 1, convert_to('customer-' || i % 200000, 'UTF8'), '[]',
        convert_to(md5(i::text), 'UTF8'), i % 1000 = 0, at, at,
        '10000000-0000-8000-8000-' || lpad((i - i % 3)::text, 12, '0')
    from generate_series(1, {ROWS}) as i, lateral (select now() - make_interval(secs => ({ROWS} - i) * 2.592)) as t (at)
    """,
    f"""
    insert into late_outcome (wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time,
                              created_at)
    select '10000000-0000-8000-8000-' || lpad((i * 10)::text, 12, '0'), 'done', 'wait', i % 8, i, at, at
    from generate_series(1, {FEWER}) as i, lateral (select now() - make_interval(secs => i * 25.92)) as t (at)
    """,
    f"""
    insert into quarantine (topic, partition, "offset", record_time, error, key, headers, body, created_at)
    select
        'wait', i % 8, i, at, 'header number ' || i % 20,
        convert_to('20000000-0000-8000-8000-' || lpad(i::text, 12, '0'), 'UTF8'),
        jsonb_build_array(
            jsonb_build_array('ORIGINAL_TOPIC', encode('orders-1', 'base64')),
            jsonb_build_array('ORIGINAL_PARTITION', encode('1', 'base64')),
            jsonb_build_array('ORIGINAL_OFFSET', encode(convert_to(i::text, 'UTF8'), 'base64')),
            jsonb_build_array('ORIGINAL_KEY', encode(convert_to('customer-' || i, 'UTF8'), 'base64'))),
        'body', at
    from generate_series(1, {FEWER}) as i, lateral (select now() - make_interval(secs => i * 25.92)) as t (at)
    """,
    f"""
    insert into sweep (wait_topic, started_at, duration_s, due, skipped, result, instance)
    select 'wait', now() - make_interval(secs => i * 25.92), 0, 0, '[]', 'done', 'sweeper-1'
    from generate_series(1, {FEWER}) as i
    """,
    """
    insert into sink_progress
    select 'wait', 'id', i, 1000000, now(), now() from generate_series(0, 7) as i
    """,
]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a query may cost.

    ``whole``: tables it may read from beginning to end, once. ``rows``: of all other tables, how many it may look at;
    ``blocks``: how many blocks of 8 kB in all, for look-ups.
    """

    whole: frozenset[str] = frozenset()
    rows: int = 0
    blocks: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)


def counting(*tables: str, rows: int = 0, **parameters: str) -> Rule:
    """Let a query read these tables whole, since its answer is about all of their rows."""
    return Rule(frozenset(tables), rows, None, parameters)


def looking_up(**parameters: str) -> Rule:
    """Let a query touch no more than what one record or key has."""
    return Rule(frozenset(), 200, 400, parameters)


# A day of dead letters is 33,333 rows.
DAY = 35_000
RULES = {
    "stuck_now": counting("wait"),
    "waiting_by_group": counting("wait"),
    # Of each of the 4 groups at most 1,001, and the oldest; an hour is 1,400 rows.
    "groups_now": counting("wait", rows=4 * 1_010 + 1_500),
    "waiting_by_topic": counting("wait"),
    "waiting_by_partition": counting("wait"),
    "waiting_by_instance": counting("wait"),
    "expiring_soon": counting(rows=2 * SOON, minutes="600"),
    "overdue": counting(rows=2 * OVERDUE),
    "oldest_waits": counting("wait"),
    "instance_in_flight": counting("wait", rows=DAY, instance="host-7"),
    "record_by_wait_id": looking_up(id="10000000-0000-8000-8000-000000500000"),
    "record_by_key": looking_up(key="customer-77"),
    "record_by_offset": looking_up(topic="orders-1", partition="1", offset="5000"),
    "record_deliveries": looking_up(
        id="10000000-0000-8000-8000-000000500000", topic="orders-1", partition="1", offset="5000"
    ),
    "record": counting(rows=15_000, topic="orders-1", partition="1", offset="5000", key=""),
    "dead_letters": looking_up(hours="24", group="", topic="", reason=""),
    "dead_letters_by_reason": counting(rows=2 * DAY),
    "dead_letters_over_time": counting(rows=DAY),
    "poison_keys": counting("dead_letter", rows=1_000, times="1"),
    "finished_late": counting(rows=DAY),
    "burst_timeline": counting("wait", rows=DAY),
    "sink_freshness": counting(),
    "last_sweeps": counting(rows=5_000),
    "quarantined": counting("quarantine"),
    "sizes": counting(),
    "growth_per_day": counting("wait", "dead_letter", "late_outcome", "quarantine", "sweep"),
}


def complaints(plan: Plan, rule: Rule) -> list[str]:
    """Return what a plan does that its rule doesn't allow."""
    found = []
    if whole := plan.read_whole() - rule.whole:
        found.append(f"reads all of {sorted(whole)}")
    if again := plan.read_whole_again():
        found.append(f"reads all of {sorted(again)} again and again")
    if plan.rows() > rule.rows + sum(COUNTS[table] for table in rule.whole):
        found.append(f"looks at {plan.rows()} rows")
    if rule.blocks is not None and plan.blocks() > rule.blocks:
        found.append(f"reads {plan.blocks()} blocks")
    if plan.sorted_kb() > MAX_SORT_KB:
        found.append(f"sorts {plan.sorted_kb()} kB")
    if carried := plan.carried():
        found.append(f"sorts or hashes {carried}")
    return found


COUNTS = {"wait": ROWS, "dead_letter": ROWS, "late_outcome": FEWER, "quarantine": FEWER, "sweep": FEWER}


@pytest.fixture(scope="module")
def large(stack: Stack) -> Iterator[psycopg.Connection[Any]]:
    """A schema of its own with all those rows; filled without logging and indexed afterwards, for speed alone."""
    with own_tables(stack) as (_, connection):
        for table in COUNTS:
            connection.execute(f"alter table {table} set unlogged".encode())
        indexes = connection.execute(
            """
            select indexname, indexdef from pg_indexes
            where schemaname = current_schema() and indexdef not like 'CREATE UNIQUE%'
            """
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f"drop index {name}".encode())
        for statement in FILL:
            connection.execute(statement.encode())
        connection.execute("set maintenance_work_mem = '256MB'")
        for _, definition in indexes:
            connection.execute(definition.encode())
        connection.execute("analyze sink_progress, " + ", ".join(COUNTS))
        # Workers would divide rows and loops of a scan among themselves; how a table is reached stays the same.
        connection.execute("set max_parallel_workers_per_gather = 0")
        yield connection


def test_every_query_has_a_rule() -> None:
    assert set(RULES) == set(query_names())


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", query_names())
def test_the_plan_does_what_its_rule_allows(name: str, large: psycopg.Connection[Any]) -> None:
    rule = RULES[name]
    query = load_query(name)
    plan = executed(large, query.sql, bind(query, rule.parameters))
    assert complaints(plan, rule) == []
    assert plan.nodes[0]["Actual Rows"] > 0, "a query that finds nothing shows nothing of its cost"


NOW = datetime.now(UTC)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (listing.page_query(parse_filter(["since=20d"], NOW), 100), looking_up()),
        (
            listing.page_query(
                parse_filter(["since=20d", "group=group-1", "reason=failed"], NOW),
                25,
                listing.Cursor(NOW - timedelta(days=10), Place("dlq", 0, 0)),
            ),
            looking_up(),
        ),
        (listing.page_query(parse_filter(["since=365d", "key=customer-77"], NOW), 100), looking_up()),
        (
            listing.page_query(
                parse_filter(["since=365d", "idempotency_key=10000000-0000-8000-8000-000000500001"], NOW), 100
            ),
            looking_up(),
        ),
        (listing.page_query(parse_filter(["since=365d", "topic=orders-1", "offset=500"], NOW), 100), looking_up()),
        (listing.page_query(parse_filter(["since=365d", "error=RareError", "state=open"], NOW), 100), looking_up()),
        (listing.page_query(parse_filter(["since=365d", "error=Error1", "state=open"], NOW), 100), looking_up()),
        (groups_query(parse_filter(["since=24h"], NOW), ["error", "topic"], 50), counting(rows=DAY)),
    ],
    ids=[
        "first page",
        "later page",
        "key",
        "idempotency key",
        "record",
        "rare error",
        "frequent error",
        "counts of a day",
    ],
)
def test_a_list_of_dead_letters_does_what_its_rule_allows(
    query: tuple[str, list[Any]], rule: Rule, large: psycopg.Connection[Any]
) -> None:
    plan = executed(large, *query)
    assert complaints(plan, rule) == []
    assert plan.nodes[0]["Actual Rows"] > 0
