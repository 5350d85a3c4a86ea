"""A role that may not do what its service does is told so, with the grants that mend it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.conftest import SettingsFactory
from tests.integration.doctor.looking import look
from tests.support.database import Database
from tests.support.naming import Names
from wait_registry.diagnosis import Severity
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings


@pytest.fixture
def role(database: Database, names: Names) -> Iterator[str]:
    """A role that may log in and nothing else."""
    name = f"{names.prefix}_role"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def _as(role: str, settings: Settings, url: str) -> Settings:
    postgres = settings.postgres.model_copy(
        update={"url": type(settings.postgres.url)(psycopg.conninfo.make_conninfo(url, user=role))}
    )
    return settings.model_copy(update={"postgres": postgres})


@pytest.mark.parametrize("service", ["sink", "sweeper"])
def test_the_grants_it_names_are_what_was_missing(
    prepared: SettingsFactory, database: Database, role: str, service: Service
) -> None:
    settings = _as(role, prepared(), database.url)
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


def test_one_right_taken_away_is_the_one_named(prepared: SettingsFactory, database: Database, role: str) -> None:
    settings = prepared()
    schema = settings.postgres.schema_name
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"grant usage on schema {schema} to {role}".encode())
        connection.execute(f"grant select, insert, update, delete on all tables in schema {schema} to {role}".encode())
        connection.execute(f"revoke delete on {schema}.dead_letter from {role}".encode())
    found = look(_as(role, settings, database.url), "sweeper")
    assert found.broken == ["postgres.permissions.sweeper"]
    [line] = found.of("postgres.permissions.sweeper")
    assert line.message == f"role {role} has no permission to delete on dead_letter"
    assert line.fix == f'psql: grant delete on "{schema}"."dead_letter" to "{role}";'
