"""The Postgres schema of one test, dropped when it ends."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from wait_registry.settings.root import Settings


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

    def connect(self, settings: Settings) -> psycopg.Connection[Any]:
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
