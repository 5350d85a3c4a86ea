"""What makes a schema, read from Postgres' catalogue, for comparing two of them."""

from __future__ import annotations

from typing import Any

from wait_registry.postgres.connection import connect
from wait_registry.settings.postgres import PostgresSettings

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


def catalogue(settings: PostgresSettings) -> dict[str, list[Any]]:
    """Return columns, indexes, constraints, views, functions, tables and applied migrations of a schema."""
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
