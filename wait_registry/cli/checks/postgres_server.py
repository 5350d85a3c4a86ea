"""Does Postgres answer, is it new enough, and is the schema there?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from wait_registry.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from wait_registry.settings.root import Settings

REACH_FIX: Final = "start Postgres, or correct postgres.url (postgres.url_file takes the path of a file with it)"
SCHEMA_FIX: Final = "`waitreg db migrate` where the schema is missing or old, else a wait registry as new as the schema"


@contextmanager
def asking(settings: Settings) -> Iterator[psycopg.Connection[TupleRow]]:
    """Open a connection that can't write and whose questions are limited by postgres.connect_timeout_s each.

    Raises `PostgresUnavailable` when none can be had.
    """
    from wait_registry.postgres.connection import connect

    with connect(settings.postgres, autocommit=True, application_name="waitreg doctor") as connection:
        connection.execute("select set_config('default_transaction_read_only', 'on', false)")
        limit = f"{settings.postgres.connect_timeout_s}s"
        connection.execute("select set_config('statement_timeout', %s, false)", (limit,))
        yield connection


def reach(settings: Settings) -> Iterator[Diagnosis]:
    """Connect, and see whether server and database are what the tables need; raises as `require_server`."""
    from wait_registry.postgres.schema import require_server

    with asking(settings) as connection:
        require_server(connection)
        version = connection.info.server_version
        where = f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
        user = connection.info.user
    yield Diagnosis("Postgres", Severity.OK, f"{where} as {user}, version {version // 10000}.{version % 10000}")


def schema(settings: Settings) -> Iterator[Diagnosis]:
    """Compare the schema's version and migrations with ours, as `require_schema` does."""
    from wait_registry.errors import ConfigurationError
    from wait_registry.postgres.schema import require_schema, schema_version

    with asking(settings) as connection:
        version = schema_version(connection)
        try:
            require_schema(connection)
        except ConfigurationError as error:
            yield Diagnosis("schema", Severity.ERROR, str(error), _fix(connection, version))
            return
    yield Diagnosis("schema", Severity.OK, f"{settings.postgres.schema_name!r} at version {version}")


def _fix(connection: psycopg.Connection[TupleRow], version: int | None) -> str:
    from wait_registry.postgres.migrations import fix_of_changed, migrations, status

    for step in status(connection):
        if step.changed:
            return fix_of_changed(step.migration)
    newer = version is not None and version > migrations()[-1].version
    return "install the wait registry that made this schema, or a newer one" if newer else "waitreg db migrate"
