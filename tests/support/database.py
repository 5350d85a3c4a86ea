"""The Postgres schema of one test or of a file's, dropped when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg import sql

from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import Stack
from wait_registry.settings.tree import Settings

Connection: TypeAlias = psycopg.Connection[Any]


class Database:
    """Installs schemas and asks questions, each over a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._installed: list[str] = []

    def install(self, settings: Settings) -> None:
        """Make the schema of these settings as `waitreg db migrate` does."""
        from wait_registry.postgres.schema import migrate_schema

        with self.connect(settings) as connection:
            migrate_schema(connection)
        self.drop_at_end(settings)

    def drop_at_end(self, settings: Settings) -> None:
        """Drop the schema of these settings when the test ends, even if another process made it."""
        self._installed.append(settings.postgres.schema_name)

    def connect(self, settings: Settings) -> Connection:
        """Return an autocommit connection whose search path is the schema of these settings."""
        options = f"-c search_path={settings.postgres.schema_name}"
        return psycopg.connect(self.url, autocommit=True, options=options)

    def rows(self, settings: Settings, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connect(settings) as connection:
            return connection.execute(query.encode(), parameters or None).fetchall()

    def execute(self, settings: Settings, statement: str, parameters: Any = None) -> None:
        with self.connect(settings) as connection:
            connection.execute(statement.encode(), parameters)

    def close(self) -> None:
        """Drop what this test installed."""
        if not self._installed:
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            for schema in self._installed:
                connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


@contextmanager
def own_tables(stack: Stack, overrides: Mapping[str, Any] | None = None) -> Iterator[tuple[Settings, Connection]]:
    """Make a schema for a file's tests; yield its settings and a connection."""
    database = Database(stack.postgres_url)
    settings = settings_against(stack.bootstrap_servers, stack.postgres_url, Names(), overrides)
    database.install(settings)
    with database.connect(settings) as connection:
        yield settings, connection
    database.close()
