"""Check that Postgres answers, is new enough, and has the schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from wait_registry.diagnosis import Diagnosis, ok
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

REACH_FIX: Final = "start Postgres, or correct postgres.url (postgres.url_file takes the path of a file with it)"
SCHEMA_FIX: Final = "do what the message says, or correct postgres.schema"
SESSION_FIX: Final = "do what the message says: docs/poolers.md lists what needs a session"


@contextmanager
def read_only_connection(settings: Settings) -> Iterator[psycopg.Connection[TupleRow]]:
    """Open a connection that can't write, with a timeout of postgres.connect_timeout_s for each statement.

    Raises:
        PostgresUnavailable: Postgres doesn't answer, refuses us, or breaks the connection.
    """
    import psycopg

    from wait_registry.postgres.connection import PostgresUnavailable, connect_pooled, interrupted

    limit_s = settings.postgres.connect_timeout_s
    try:
        with connect_pooled(
            settings.postgres, application_name="waitreg doctor", statement_timeout_s=limit_s
        ) as connection:
            yield connection
    except psycopg.errors.QueryCanceled:
        raise
    except (PostgresUnavailable, psycopg.OperationalError) as error:
        found = interrupted(error) if isinstance(error, psycopg.OperationalError) else error
        raise PostgresUnavailable(str(found), found.fix or REACH_FIX) from error


def reach(settings: Settings) -> Iterator[Diagnosis]:
    """Connect, and check server and database; raises as `require_server`."""
    from wait_registry.postgres.schema import require_server

    with read_only_connection(settings) as connection:
        require_server(connection)
        # A pooler answers although no server stands behind it.
        connection.execute("select")
        version = connection.info.server_version
        where = f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
        user = connection.info.user
    yield ok(f"{where} as {user}, version {version // 10000}.{version % 10000}")


def session(settings: Settings) -> Iterator[Diagnosis]:
    """Connect as sink and sweeper do, which no pooler in transaction mode may serve; raises as `connect`."""
    from wait_registry.postgres.connection import connect

    with connect(settings.postgres, autocommit=True, application_name="waitreg doctor"):
        yield ok("each connection has a session of its own")


def schema(settings: Settings) -> Iterator[Diagnosis]:
    """Compare the schema's version and migrations with ours; raises as `require_schema`, whose message has the fix."""
    from wait_registry.postgres.schema import require_schema, schema_version

    with read_only_connection(settings) as connection:
        require_schema(connection)
        version = schema_version(connection)
    yield ok(f"{settings.postgres.schema_name!r} at version {version}")
