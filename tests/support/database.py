"""The Postgres schema of one test, dropped when it ends, and what a schema consists of."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.root import Settings

# Its name is cut out of everything.
_PARTS = {
    "columns": """
        select table_name, ordinal_position, column_name, data_type, is_nullable, column_default, is_identity
        from information_schema.columns where table_schema = %s""",
    "indexes": "select tablename, indexname, indexdef from pg_indexes where schemaname = %s",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        from pg_constraint where connamespace = to_regnamespace(%s)""",
    "views": "select viewname, definition from pg_views where schemaname = %s",
    "functions": "select proname, pg_get_functiondef(oid) from pg_proc where pronamespace = to_regnamespace(%s)",
    "tables": "select relname, relkind::text, reloptions from pg_class where relnamespace = to_regnamespace(%s)",
    "applied": "select version, name, checksum from {schema}.wait_registry_migration where %s <> ''",
}


class Database:
    """Installs schemas and asks questions, each over a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._installed: list[str] = []

    def install(self, settings: Settings) -> None:
        """Make the schema of these settings as `waitreg db migrate` does."""
        from wait_registry.postgres.schema import install_schema

        with psycopg.connect(self.url, autocommit=True) as connection:
            install_schema(connection, settings.postgres.schema_name)
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

    def close(self) -> None:
        """Drop what this test installed."""
        if not self._installed:
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            for schema in self._installed:
                connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


def catalogue(settings: PostgresSettings) -> dict[str, list[Any]]:
    """Return columns, indexes, constraints, views, functions, tables and applied migrations of a schema."""
    from wait_registry.postgres.connection import connect

    with connect(settings, autocommit=True) as connection:
        return {
            part: sorted(
                repr(row).replace(settings.schema_name, "schema")
                for row in connection.execute(
                    query.replace("{schema}", settings.schema_name).encode(), (settings.schema_name,)
                )
            )
            for part, query in _PARTS.items()
        }
