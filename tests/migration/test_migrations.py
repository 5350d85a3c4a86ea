"""A schema of an earlier version, full of rows, is brought up to date: no row changes, and everything works on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from sweeper.due import find_due
from tests.conftest import ROOT, SettingsFactory
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import ENCODER
from tests.support.database import Database, catalogue
from tests.support.waiting import wait_until
from tests.unit.sink.batches import Row
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres import migrations as migrating
from wait_registry.postgres.connection import connect
from wait_registry.postgres.migrations import migrate, migrations, record
from wait_registry.postgres.query_file import bind, load_query, query_names
from wait_registry.postgres.schema import require_schema
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.root import Settings

INCIDENT = ROOT / "tests" / "integration" / "queries" / "incident.sql"
TABLES = ("wait", "dead_letter", "late_outcome", "quarantine", "sweep", "sink_progress")
# What incident.sql doesn't have: keys longer than any B-tree takes, that compression can't help; keys that are no text.
ODD = """
insert into wait (wait_expiration_uuid, original_topic, original_partition, original_offset, original_key,
                  wait_expiration_time, body, wait_topic, wait_partition, wait_offset)
values ('w-long-key', repeat('t', 249), 2147483647, 9223372036854775807, %(long)s,
        now() + interval '1 hour', '\\x00ff00', 'wait', 2, 3),
       ('w-empty-key', 'orders', null, null, '', '0001-01-01Z', '', 'wait', 2, 4);
insert into dead_letter (topic, partition, "offset", dead_letter_time, key, body)
values ('dlq', 1, 0, null, %(long)s, null), ('dlq', 1, 1, '9999-12-31Z', '', '');
insert into quarantine (topic, partition, "offset", error, key, headers, body)
values ('wait', 0, 0, 'odd', %(long)s, null, null), ('wait', 0, 1, 'odd', 'é and half of it: \\303', '[]', ''),
       ('wait', 0, 2, 'odd', null, '[[{"base64": "AA=="}, null]]', null);
"""
LONG = os.urandom(9_000)
PARAMETERS = {"instance": "host", "id": "d-late", "key": "k-1", "topic": "orders", "partition": "0", "offset": "100"}


@pytest.fixture
def older(settings_for: SettingsFactory, database: Database) -> Iterator[Settings]:
    """The first schema, filled."""
    settings = settings_for({"wait.topic": "wait"})
    database.drop_at_end(settings)
    first = migrations()[0]
    with connect(settings.postgres, autocommit=True) as connection:
        connection.execute(f"create schema {settings.postgres.schema_name}".encode())
        connection.execute(first.text)
        record(connection, first)
        connection.execute(INCIDENT.read_bytes())
        # Several statements take no parameters from the server's side.
        with psycopg.ClientCursor(connection) as cursor:
            cursor.execute(ODD.encode(), {"long": LONG})
    yield settings


def columns(database: Database, settings: Settings) -> dict[str, str]:
    question = (
        "select attrelid::regclass::text, string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
        " where attrelid = any(array[{}]::regclass[]) and attnum > 0 group by 1"
    )
    return dict(database.rows(settings, question.format(", ".join(f"'{table}'" for table in TABLES))))


def contents(database: Database, settings: Settings, names: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table as text, so that no type's reading hides a change; ``names``: of the columns."""
    return {
        table: database.rows(settings, f"select row({names[table]})::text from {table} order by 1") for table in TABLES
    }


def test_no_row_changes_and_the_schema_is_the_whole_one(
    older: Settings, settings_for: SettingsFactory, database: Database
) -> None:
    names = columns(database, older)
    before = contents(database, older, names)
    assert all(before.values()), "a table without rows shows nothing"
    with connect(older.postgres, autocommit=True) as connection:
        with pytest.raises(
            ConfigurationError, match=r"has version 1, this version needs \d+: run `waitreg db migrate`"
        ):
            require_schema(connection)
        assert [step.version for step in migrate(connection)] == [step.version for step in migrations()[1:]]
        require_schema(connection)
    assert contents(database, older, names) == before

    whole = settings_for({"postgres.schema": f"{older.postgres.schema_name}_whole"})
    database.install(whole)
    assert catalogue(older.postgres) == catalogue(whole.postgres)


def test_sink_sweeper_and_queries_work_on_what_was_migrated(older: Settings, database: Database) -> None:
    with connect(older.postgres, autocommit=True) as connection:
        migrate(connection)
        due = find_due(connection, older, 3)
        assert due.partitions == (0, 2)
        assert due.rows == 2
        for name in query_names():
            query = load_query(name)
            given = {key: value for key, value in PARAMETERS.items() if key in query.parameters}
            assert connection.execute(query.sql.encode(), bind(query, given)).fetchall(), name
        story = load_query("record_by_key")
        found = connection.execute(story.sql.encode(), bind(story, {"key": f"\\x{LONG.hex()}"})).fetchall()
        assert [row[2] for row in found] == ["w-long-key"]

    original = Original("orders", 0, 100, 1_700_000_000_000, "create", os.urandom(20_000), b"body", ())
    new = "01900000-0000-8000-8000-000000000001"
    with closing(HandFed(older)) as waits, closing(HandFed(older, "dlq", dead_letters=True)) as letters:
        headers = tuple(ENCODER.headers(original, new, now_ms() + 60_000))
        waits.feed([Row(new.encode(), b"body", 0, 20, now_ms(), headers)])
        waits.feed([Row(b"no id", b"body", 0, 21, now_ms(), ())])
        letters.feed([_dead_letter(original, new)])
        events = "select event from record_event where wait_expiration_uuid = %s order by 1"
        assert database.rows(older, events, new) == [("dead letter: failed",), ("waiting",)]
        waits.feed([Row(new.encode(), None, 0, 22, now_ms(), tuple(tombstone_headers(Outcome.DEAD_LETTERED)))])
    assert database.rows(older, "select 1 from wait where wait_expiration_uuid = %s", new) == []


def _dead_letter(original: Original, wait_id: str) -> Row:
    lineage = Lineage.of(
        original, wait_id=wait_id, wait_partition=0, wait_offset=20, group="g", instance="i", delivery=1
    )
    failure = Failure(Reason.FAILED, "Error", "message", None, now_ms())
    headers = tuple(dead_letter_headers((), lineage, failure))
    return Row(original.key, original.value, 0, 30, now_ms(), headers, "dlq")


def test_two_at_once_apply_each_step_once(older: Settings) -> None:
    applied: list[list[int]] = []

    def run() -> None:
        with connect(older.postgres, autocommit=True) as connection:
            applied.append([step.version for step in migrate(connection)])

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(applied) == [[], [step.version for step in migrations()[1:]]]


def test_a_table_in_use_for_long_ends_the_migration_and_changes_nothing(
    older: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_TIMEOUT_S", 1)
    names = columns(database, older)
    before = contents(database, older, names)
    with database.connect(older) as busy, connect(older.postgres, autocommit=True) as connection:
        with busy.transaction():
            busy.execute("update wait set delivery = delivery where false")
            with pytest.raises(
                TransientError, match=r"in use for more than 1 s, nothing was changed.*db migrate. again"
            ):
                migrate(connection)
        assert contents(database, older, names) == before
        assert [step.version for step in migrate(connection)] == [step.version for step in migrations()[1:]]


def test_no_time_limit_of_the_server_s_ends_a_migration(older: Settings, database: Database) -> None:
    with (
        database.connect(older) as busy,
        connect(older.postgres, autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        connection.execute("set statement_timeout = '200ms'")
        with busy.transaction():
            busy.execute("update wait set delivery = delivery where false")
            migrating_now = pool.submit(migrate, connection)
            wait_until(lambda: migrating_now.done() or _waits_for_ms(busy, connection) > 500, 60, "more than the limit")
        assert [step.version for step in migrating_now.result(60)] == [step.version for step in migrations()[1:]]


def test_a_cancelled_migration_says_so_and_changes_nothing(older: Settings, database: Database) -> None:
    names = columns(database, older)
    before = contents(database, older, names)
    with (
        database.connect(older) as busy,
        connect(older.postgres, autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        with busy.transaction():
            busy.execute("update wait set delivery = delivery where false")
            migrating_now = pool.submit(migrate, connection)
            wait_until(lambda: migrating_now.done() or _waits_for_ms(busy, connection) > 0, 60, "a wait for the table")
            busy.execute("select pg_cancel_backend(%s)", (connection.info.backend_pid,))
            with pytest.raises(
                TransientError, match=r"migration 0002 .* nothing was changed: canceling statement.*again"
            ):
                migrating_now.result(60)
        assert contents(database, older, names) == before


def _waits_for_ms(busy: psycopg.Connection[Any], waiting: psycopg.Connection[Any]) -> float:
    """Return for how long a connection has been waiting for the one that is busy; 0 when it isn't."""
    row = busy.execute(
        "select extract(epoch from clock_timestamp() - query_start) * 1000 from pg_stat_get_activity(%s) "
        "where pg_backend_pid() = any(pg_blocking_pids(pid))",
        (waiting.info.backend_pid,),
    ).fetchone()
    return 0.0 if row is None else float(row[0])
