"""A read-only connection to the tables for a command, with what a user can do when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from wait_registry.settings.root import Settings


@contextmanager
def read_tables(settings: Settings, application_name: str, what: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Connect for reading.

    Args:
        settings: where Postgres is.
        application_name: of the command, for pg_stat_activity.
        what: what is read, for messages.

    Raises:
        ConfigurationError: a value can't be used, or a right is missing.
        PostgresUnavailable: there is no connection.
        psycopg.OperationalError: a query was interrupted; the command says what helps.
    """
    import psycopg

    from wait_registry.postgres.connection import connect_pooled
    from wait_registry.postgres.error_text import server_message
    from wait_registry.postgres.schema import require_schema

    with connect_pooled(settings.postgres, application_name=application_name) as connection:
        try:
            require_schema(connection)
            yield connection
        except psycopg.DataError as error:
            raise ConfigurationError(f"{what} can't use these values: {server_message(error)}") from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"{server_message(error)}: grant select on it, or set postgres.url to another user"
            ) from None


def age(
    connection: psycopg.Connection[TupleRow], settings: Settings, ask_kafka: Callable[[Settings], str] | None = None
) -> str:
    """Return the line with the age of the answer; a user who may not read the age may still query.

    Args:
        connection: to the tables.
        settings: which sink there is.
        ask_kafka: returns the position of a Connect sink; by default Kafka is asked each time.
    """
    import psycopg

    from wait_registry.postgres.error_text import server_message
    from waitreg.tables_age import age_line, connect_line

    try:
        return age_line(connection, settings, ask_kafka or connect_line)
    except psycopg.errors.InsufficientPrivilege as error:
        connection.rollback()
        return f"age of the tables unknown: {server_message(error)}"
