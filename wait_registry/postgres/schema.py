"""The schema of this version: what makes it, and the check at every start."""

from __future__ import annotations

from importlib import resources

import psycopg
from psycopg.rows import TupleRow

from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import schema_of
from wait_registry.postgres.migrations import (
    Migration,
    applied_migrations,
    migrate,
    migrations,
    require_unchanged,
    status,
)
from wait_registry.postgres.queries import RESOURCES, sql_text

OLDEST_SERVER = 140_000


def schema_migrations() -> tuple[Migration, ...]:
    """Return ``sql/schema.sql``, which is version 1, then the files of ``sql/migrations``, oldest first."""
    baseline = Migration(1, "sql/schema.sql", sql_text("schema.sql"))
    return (baseline, *migrations(resources.files(RESOURCES) / "migrations", first=2))


def migrate_schema(connection: psycopg.Connection[TupleRow]) -> list[Migration]:
    """Bring the connection's schema to this version, and return the migrations that were applied.

    Raises:
        ConfigurationError: the server is too old, or as `migrate`.
        TransientError: as `migrate`; nothing was changed, retry later.
    """
    require_server(connection)
    return migrate(connection, schema_migrations())


def schema_version(connection: psycopg.Connection[TupleRow]) -> int | None:
    """Return the number of the newest migration in the connection's schema, or None if there is no schema."""
    return max(applied_migrations(connection), default=None)


def require_schema(connection: psycopg.Connection[TupleRow]) -> None:
    """Raise ConfigurationError unless the schema has the newest version, by this version's own migrations."""
    require_server(connection)
    known = schema_migrations()
    require_unchanged(status(connection, known))
    newest = known[-1].version
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
