"""Migrations create the schema and change it without a loss; a wrong schema is refused with the fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres import migrations as migrating
from wait_registry.postgres import schema
from wait_registry.postgres.connection import PostgresUnavailable, connect, schema_of
from wait_registry.postgres.migrations import Migration, migrate, migrations, status
from wait_registry.postgres.schema import migrate_schema, require_schema, schema_migrations, schema_version
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.tree import Settings

# Two changes as later versions make them.
LATER = {
    "0002_a_column.sql": "alter table wait add column note text; update wait set note = 'n';",
    "0003_an_index.sql": "create index wait_note on wait (note);",
}
ROWS = "select wait_expiration_uuid, original_key, body, wait_offset from wait order by wait_offset"


@pytest.fixture
def empty(settings_for: SettingsFactory, database: Database) -> Settings:
    """Settings whose schema doesn't exist."""
    settings = settings_for()
    database.drop_at_end(settings)
    return settings


@pytest.fixture
def older(empty: Settings, database: Database) -> Settings:
    """The schema of this version, with rows."""
    database.install(empty)
    with database.connect(empty) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into wait (wait_expiration_uuid, original_topic, original_key, wait_expiration_time, body,"
            " wait_topic, wait_partition, wait_offset) values (%s, 'orders', %s, now(), %s, 'wait', 0, %s)",
            [("text", b"k", b"body", 1), ("bytes", b"\x00\xff" * 4_000, None, 2), ("empty", b"", b"", 3)],
        )
    return empty


@pytest.fixture
def later(tmp_path: Path) -> Sequence[Migration]:
    """The migrations of a later version: this version's, and two more."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for name, text in LATER.items():
        (folder / name).write_text(text)
    return (*schema_migrations(), *migrations(folder, first=len(schema_migrations()) + 1))


def versions(applied: Sequence[Migration]) -> list[int]:
    return [migration.version for migration in applied]


def test_a_migration_keeps_rows_and_runs_once(older: Settings, later: Sequence[Migration], database: Database) -> None:
    before = database.rows(older, ROWS)
    with connect(older.postgres, autocommit=True) as connection:
        assert [step.applied is not None for step in status(connection, later)] == [True, False, False]
        assert versions(migrate(connection, later)) == [2, 3]
        assert migrate(connection, later) == []
        assert all(step.applied and not step.changed for step in status(connection, later))
        assert schema_version(connection) == 3
    assert database.rows(older, ROWS) == before
    assert database.rows(older, "select distinct note from wait") == [("n",)]


def test_several_at_once_apply_each_migration_once(empty: Settings, later: Sequence[Migration]) -> None:
    def run(_: int) -> list[int]:
        with connect(empty.postgres, autocommit=True) as connection:
            return versions(migrate(connection, later))

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(run, range(3), timeout=30)) == [[], [], [1, 2, 3]]


@contextmanager
def in_use(settings: Settings, database: Database) -> Iterator[psycopg.Connection[Any]]:
    """Keep the table `wait` in use by an open transaction."""
    with database.connect(settings) as busy, busy.transaction():
        busy.execute("update wait set delivery = delivery where false")
        yield busy


def test_a_table_in_use_for_long_ends_the_migration_and_changes_nothing(
    older: Settings, later: Sequence[Migration], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_TIMEOUT_S", 1)
    with connect(older.postgres, autocommit=True) as connection:
        with in_use(older, database):
            with pytest.raises(
                TransientError, match=r"in use for more than 1 s, nothing was changed.*db migrate. again"
            ):
                migrate(connection, later)
        assert schema_version(connection) == 1
        assert versions(migrate(connection, later)) == [2, 3]


def test_no_time_limit_ends_a_migration(older: Settings, later: Sequence[Migration], database: Database) -> None:
    with connect(older.postgres, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("set statement_timeout = '200ms'")
        with in_use(older, database) as busy:
            running = pool.submit(migrate, connection, later)
            wait_until(lambda: running.done() or _waits_for_ms(busy, connection) > 500, 60, "more than the limit")
        assert versions(running.result(60)) == [2, 3]


def test_a_cancelled_migration_changes_nothing(older: Settings, later: Sequence[Migration], database: Database) -> None:
    with connect(older.postgres, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        with in_use(older, database) as busy:
            running = pool.submit(migrate, connection, later)
            wait_until(lambda: running.done() or _waits_for_ms(busy, connection) > 0, 60, "a wait for the table")
            busy.execute("select pg_cancel_backend(%s)", (connection.info.backend_pid,))
            with pytest.raises(
                TransientError, match=r"migration 0002 .* nothing was changed: canceling statement.*again"
            ):
                running.result(60)
        assert schema_version(connection) == 1


def test_a_failed_migration_keeps_the_version(older: Settings, later: Sequence[Migration], database: Database) -> None:
    broken = (*later, Migration(4, "sql/migrations/0004_broken.sql", "alter table nowhere add column x int"))
    with connect(older.postgres, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            migrate(connection, broken)
        assert schema_version(connection) == 1
    assert database.rows(older, "select to_regclass('wait_note')") == [(None,)]


def _waits_for_ms(busy: psycopg.Connection[Any], waiting: psycopg.Connection[Any]) -> float:
    """Return for how long a connection has been waiting for the one that is busy; 0 when it isn't."""
    row = busy.execute(
        "select extract(epoch from clock_timestamp() - query_start) * 1000 from pg_stat_get_activity(%s) "
        "where pg_backend_pid() = any(pg_blocking_pids(pid))",
        (waiting.info.backend_pid,),
    ).fetchone()
    return 0.0 if row is None else float(row[0])


def test_a_missing_older_newer_or_changed_schema_is_refused(
    empty: Settings, later: Sequence[Migration], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(empty.postgres, autocommit=True) as connection:
        assert schema_version(connection) is None
        with pytest.raises(ConfigurationError, match=r"is not installed.*`waitreg db migrate`"):
            require_schema(connection)
        migrate_schema(connection)
        require_schema(connection)
        with monkeypatch.context() as newer_version:
            newer_version.setattr(schema, "schema_migrations", lambda: later)
            with pytest.raises(
                ConfigurationError, match=r"has version 1, this version needs 3: run `waitreg db migrate`"
            ):
                require_schema(connection)
            migrate_schema(connection)
            require_schema(connection)
        with pytest.raises(ConfigurationError, match=r"version 3.*newer wait registry"):
            require_schema(connection)
        with pytest.raises(ConfigurationError, match=r"has version 3, .*`waitreg db migrate` of the newer"):
            migrate_schema(connection)
        connection.execute("update wait_registry_migration set checksum = 'other' where version = 1")
        assert status(connection, later)[0].changed
        for refused in (migrate_schema, require_schema):
            with pytest.raises(
                ConfigurationError,
                match=r"sql/schema\.sql was applied and has changed since \(applied other, this .*install the wait",
            ):
                refused(connection)


def test_a_failed_connection_is_transient_and_shows_no_password(settings_for: SettingsFactory) -> None:
    nowhere = PostgresSettings(url=SecretStr("postgresql://u:hidden@127.0.0.1:1/x"), connect_timeout_s=2)
    with pytest.raises(PostgresUnavailable) as raised:
        connect(nowhere)
    assert "hidden" not in str(raised.value)
    with connect(settings_for().postgres) as connection:
        assert schema_of(connection) == settings_for().postgres.schema_name


def test_readable_views_show_text_and_mark_what_is_none(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared()
    insert = """
        insert into wait (wait_expiration_uuid, original_topic, original_key, original_headers, wait_expiration_time,
            body, wait_topic, wait_partition, wait_offset)
        values (%s, 'orders', %s, %s::jsonb, now(), %s, 'wait', 0, %s)"""
    headers = '[["a", "aGk="], ["b", null], ["a", "/w=="], [{"base64": "AA=="}, "AA=="], ["c", ""]]'
    with database.connect(settings) as connection:
        connection.execute(insert, ("text", b"k\xc3\xa9y", headers, b"plain", 1))
        connection.execute(insert, ("bytes", None, "[]", b"a\x00b", 2))
    rows = database.rows(
        settings,
        "select original_key, original_key_encoding, original_headers, body, body_encoding from wait_readable "
        "order by wait_offset",
    )
    assert rows[0] == (
        "kéy",
        "utf-8",
        [["a", "hi"], ["b", None], ["a", {"base64": "/w=="}], [{"base64": "AA=="}, {"base64": "AA=="}], ["c", ""]],
        "plain",
        "utf-8",
    )
    assert rows[1] == (None, None, [], "YQBi", "base64")
