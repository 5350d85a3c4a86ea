"""Doctor names the missing permissions of a role in Postgres, with the grants."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.conftest import SettingsFactory
from tests.integration.doctor.findings import as_role, look
from tests.support.database import Database
from tests.support.naming import Names
from wait_registry.diagnosis import Severity
from wait_registry.settings.relations import Service


@pytest.fixture
def role(database: Database, names: Names) -> Iterator[str]:
    """A role that may log in and nothing else."""
    name = f"{names.prefix}_role"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("service", ["sink", "sweeper"])
def test_the_named_grants_suffice(prepared: SettingsFactory, database: Database, role: str, service: Service) -> None:
    settings = as_role(role, prepared(), database.url)
    id = f"postgres.permissions.{service}"
    lines = look(settings, service).of(id)
    assert {line.severity for line in lines} == {Severity.ERROR}
    assert any("use the schema" in line.message for line in lines)
    assert any(line.message.endswith(" on wait") for line in lines)
    with psycopg.connect(database.url, autocommit=True) as connection:
        for line in lines:
            connection.execute(line.fix.removeprefix("psql: ").encode())
    found = look(settings, service)
    assert found.broken == []
    assert found.one(id).message.startswith(f"role {role} has all ")


def test_one_missing_permission_is_the_one_named(prepared: SettingsFactory, database: Database, role: str) -> None:
    settings = prepared()
    schema = settings.postgres.schema_name
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"grant usage on schema {schema} to {role}".encode())
        connection.execute(f"grant select, insert, update, delete on all tables in schema {schema} to {role}".encode())
        connection.execute(f"revoke delete on {schema}.dead_letter from {role}".encode())
    found = look(as_role(role, settings, database.url), "sweeper")
    assert found.broken == ["postgres.permissions.sweeper"]
    [line] = found.of("postgres.permissions.sweeper")
    assert line.message == f"role {role} has no permission to delete on dead_letter"
    assert line.fix == f'psql: grant delete on "{schema}"."dead_letter" to "{role}";'
