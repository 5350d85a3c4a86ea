"""A read-only connection to the tables for a command, with what a user can do when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg.rows import TupleRow

from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.errors import server_message
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.tree import Settings
from waitreg.tables_age import age_line, connect_line


@contextmanager
def read_tables(settings: Settings, application_name: str, what: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Connect for reading.

    Args:
        settings: where Postgres is.
        application_name: of the command, for pg_stat_activity.
        what: what is read, for messages.

    Raises:
        ConfigurationError: a value can't be used, or a permission is missing.
        PostgresUnavailable: there is no connection.
        psycopg.OperationalError: a query was interrupted; the command says what helps.
    """
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
    connection: psycopg.Connection[TupleRow],
    settings: Settings,
    ask_kafka: Callable[[Settings], str] = connect_line,
) -> str:
    """Return the line with the age of the answer; a user who may not read the age may still query.

    Args:
        connection: to the tables.
        settings: which sink there is.
        ask_kafka: returns the position of a Connect sink; by default Kafka is asked each time.
    """
    try:
        return age_line(connection, settings, ask_kafka)
    except psycopg.errors.InsufficientPrivilege as error:
        connection.rollback()
        return f"age of the tables unknown: {server_message(error)}"
