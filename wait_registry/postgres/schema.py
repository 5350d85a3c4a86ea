"""The whole schema: installed at once, and checked at every start."""

from __future__ import annotations

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import schema_of
from wait_registry.postgres.migrations import (
    applied_migrations,
    lock_migrations,
    migrations,
    record,
    require_unchanged,
    status,
)
from wait_registry.postgres.queries import sql_text

OLDEST_SERVER = 140_000


def install_schema(connection: psycopg.Connection[TupleRow], schema: str) -> None:
    """Create the schema from ``sql/schema.sql``, unless it is installed.

    Raises:
        ConfigurationError: an older version is installed; run ``waitreg db migrate``.
    """
    require_server(connection)
    with connection.transaction():
        lock_migrations(connection)
        connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(schema)))
        if schema_version(connection) is None:
            connection.execute(sql_text("schema.sql"))
            for migration in migrations():
                record(connection, migration)
        require_schema(connection)


def schema_version(connection: psycopg.Connection[TupleRow]) -> int | None:
    """Return the number of the newest migration in the connection's schema, or None if there is no schema."""
    return max(applied_migrations(connection), default=None)


def require_schema(connection: psycopg.Connection[TupleRow]) -> None:
    """Raise ConfigurationError unless the schema has the newest version, by this version's own migrations."""
    require_server(connection)
    require_unchanged(status(connection))
    newest = migrations()[-1].version
    found = schema_version(connection)
    if found == newest:
        return
    seen = "is not installed" if found is None else f"has version {found}"
    fix = "run `waitreg db migrate`" if found is None or found < newest else "run a newer wait registry"
    raise ConfigurationError(
        f'the schema "{schema_of(connection)}" {seen}, this version needs {newest}: {fix} (setting postgres.schema)'
    )


def require_server(connection: psycopg.Connection[TupleRow]) -> None:
    """Raise ConfigurationError if the server is too old or the database isn't UTF-8."""
    if connection.info.server_version < OLDEST_SERVER:
        raise ConfigurationError(
            f"Postgres {connection.info.server_version // 10_000} is too old: the wait registry needs 14 or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database's encoding is {encoding}, but topic and header names need UTF8: "
            "create a database `with encoding 'UTF8' template template0` and set postgres.url"
        )
