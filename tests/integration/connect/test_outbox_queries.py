"""Filling the outbox reads no large table whole: it runs every few seconds, alongside a million open rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.integration.connect.outbox import Connection, fill
from tests.support.connect_connectors import our_connector
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import Stack
from wait_registry.settings.tree import Settings

WAITING: Final = 200_000
EXPORTED: Final = 100_000
DUE: Final = 200
YOUNG: Final = 50
AGED: Final = 50
CALLS: Final = 8
TABLES: Final = ("wait", "dead_letter", "expired_outbox", "expired_tombstone")
FILL: Final = f"""
insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset,
                  created_at)
    select 'w' || n, 'orders',
           now() + case when n <= {DUE + YOUNG} then interval '-1 hour' else interval '1 hour' end,
           'wait', n % 8, n, now() - case when n <= {DUE} then interval '2 hours' else interval '0' end
    from generate_series(1, {WAITING}) as n;
insert into expired_outbox (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition,
                            wait_offset, created_at)
    select 'e' || n, 'orders', now(), 'wait', n % 8, n,
           now() - make_interval(days => case when n <= {AGED} then 8 else 0 end)
    from generate_series(1, {EXPORTED}) as n;
insert into expired_tombstone (wait_expiration_uuid, wait_topic, wait_partition, wait_offset, created_at)
    select wait_expiration_uuid, wait_topic, wait_partition, wait_offset, created_at from expired_outbox;
insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, wait_offset)
    select 'dlq', 0, wait_offset, 'expired', wait_expiration_uuid, wait_partition, wait_offset from expired_outbox;
"""
READ: Final = """
    select relname, seq_tup_read, coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
    where schemaname = current_schema() and relname = any(%s)
"""


@pytest.fixture(scope="module")
def settings(stack: Stack) -> Settings:
    return settings_against(
        stack.bootstrap_servers, stack.postgres_url, Names(), {"wait.topic": "wait", "connect.settle_s": 1800}
    )


@pytest.fixture(scope="module")
def filled(stack: Stack, settings: Settings) -> Iterator[Database]:
    database = Database(stack.postgres_url)
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute(FILL.encode())
        for table in TABLES:
            connection.execute(f"vacuum analyze {table}".encode())
    yield database
    database.close()


@pytest.fixture
def large(filled: Database, settings: Settings) -> Iterator[Connection]:
    """What a test does to these tables is rolled back."""
    with filled.connect(settings) as connection:
        yield connection


@pytest.mark.guarantee("C.7")
def test_a_call_reads_only_due_and_old_rows(large: Connection) -> None:
    # In one transaction the counts add up; more calls than it takes Postgres to settle for a plan without parameters.
    with large.transaction(force_rollback=True):
        assert [fill(large, 40, settle_s=1800) for _ in range(CALLS)] == [40] * 5 + [0] * 3
        read = large.execute(READ, (list(TABLES),)).fetchall()
    assert len(read) == len(TABLES)
    for table, whole, found in read:
        assert whole == 0, f"{table} was read from beginning to end"
        assert found <= 3 * CALLS * (DUE + YOUNG + AGED), f"{found} rows of {table} were read in {CALLS} calls"


@pytest.mark.parametrize("connector", ["expired.source", "expired.tombstones"])
def test_a_jdbc_source_reads_only_from_its_position(large: Connection, settings: Settings, connector: str) -> None:
    found = our_connector(f"{connector}.jdbc.json", settings)
    # What the connector makes of it, as the driver prepares it: without a look at the parameter.
    query = f'{found.config["query"]} WHERE "id" > %s ORDER BY "id" ASC'.encode()
    large.execute("set plan_cache_mode = force_generic_plan")
    with large.transaction(force_rollback=True):
        for _ in range(CALLS):
            large.execute(query, (EXPORTED - 100,), prepare=True)
        read = large.execute(READ, (list(TABLES),)).fetchall()
    assert len(read) == len(TABLES)
    for table, whole, found_by_index in read:
        assert whole == 0, f"{table} was read from beginning to end"
        assert found_by_index <= 4 * CALLS * (DUE + YOUNG + AGED), f"{found_by_index} rows of {table} were read"
