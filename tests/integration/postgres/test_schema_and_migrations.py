"""`schema.sql` and the migrations create the same database; a wrong one is refused with the command that fixes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from pydantic import SecretStr

from tests.conftest import SettingsFactory
from tests.support.database import Database, catalogue
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import PostgresUnavailable, connect, schema_of
from wait_registry.postgres.migrations import migrate, migrations, status
from wait_registry.postgres.schema import install_schema, require_schema, schema_version
from wait_registry.settings.postgres import PostgresSettings


@pytest.fixture
def two_schemas(
    settings_for: SettingsFactory, database: Database
) -> Iterator[tuple[PostgresSettings, PostgresSettings]]:
    settings = settings_for().postgres
    pair = tuple(
        PostgresSettings(url=settings.url, schema=f"{settings.schema_name}_{suffix}") for suffix in ("whole", "steps")
    )
    yield pair[0], pair[1]
    with psycopg.connect(database.url, autocommit=True) as connection:
        for each in pair:
            connection.execute(f"drop schema if exists {each.schema_name} cascade".encode())


def test_migrations_lead_to_exactly_the_whole_schema(two_schemas: tuple[PostgresSettings, PostgresSettings]) -> None:
    whole, steps = two_schemas
    with connect(whole, autocommit=True) as connection:
        install_schema(connection, whole.schema_name)
    with connect(steps, autocommit=True) as connection:
        assert migrate(connection) == list(migrations())
        assert migrate(connection) == []
    found = catalogue(whole)
    assert found == catalogue(steps)
    assert all(found.values())


def test_installing_over_an_installed_schema_changes_nothing(
    two_schemas: tuple[PostgresSettings, PostgresSettings],
) -> None:
    whole, _ = two_schemas
    with connect(whole, autocommit=True) as connection:
        install_schema(connection, whole.schema_name)
        connection.execute("insert into sink_progress values ('t', 'i', 0, 5, now(), now())")
        install_schema(connection, whole.schema_name)
        assert connection.execute("select next_offset from sink_progress").fetchall() == [(5,)]


def test_two_migrations_at_once_take_turns(two_schemas: tuple[PostgresSettings, PostgresSettings]) -> None:
    _, steps = two_schemas
    applied: list[int] = []

    def run() -> None:
        with connect(steps, autocommit=True) as connection:
            applied.append(len(migrate(connection)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(applied) == [0, 0, len(migrations())]


def test_a_missing_older_newer_or_changed_schema_is_refused(
    two_schemas: tuple[PostgresSettings, PostgresSettings],
) -> None:
    whole, _ = two_schemas
    with connect(whole, autocommit=True) as connection:
        assert schema_version(connection) is None
        assert not any(step.applied for step in status(connection))
        with pytest.raises(ConfigurationError, match=r"is not installed.*`waitreg db migrate`"):
            require_schema(connection)
        install_schema(connection, whole.schema_name)
        require_schema(connection)
        connection.execute("insert into wait_registry_migration values (99, 'of the future', '', now())")
        with pytest.raises(ConfigurationError, match=r"version 99.*newer wait registry"):
            require_schema(connection)
        with pytest.raises(ConfigurationError, match=r"has version 99, .*`waitreg db migrate` of the newer"):
            migrate(connection)
        connection.execute("delete from wait_registry_migration where version = 99")
        connection.execute("update wait_registry_migration set checksum = 'other' where version = 1")
        assert status(connection)[0].changed
        for refused in (migrate, require_schema):
            with pytest.raises(
                ConfigurationError,
                match=r"0001_initial\.sql was applied and has changed since \(applied other, this .*install the wait",
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
