"""The Postgres database with the tables."""

from __future__ import annotations

from pydantic import Field, SecretStr

from wait_registry.settings import Section


class PostgresSettings(Section):
    """How to reach Postgres, and the schema of the tables."""

    url: SecretStr = SecretStr("postgresql://localhost:5432/postgres")
    """libpq connection string or URL; may carry the password, so it is never printed"""
    # The schema: the field can't be called `schema`, which pydantic's models reserve.
    schema_name: str = Field("public", alias="schema", pattern=r"^[a-z_][a-z0-9_]*$", max_length=63)
    """schema of all tables, created by `waitreg db migrate`"""
    connect_timeout_s: int = Field(10, ge=1, le=300)
    """limit for opening a connection, s"""
