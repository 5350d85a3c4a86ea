"""Connections to the Postgres that holds the view, all opened in one place."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from pydantic import SecretStr

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.error_text import refusal_of
from wait_registry.settings.postgres import PostgresSettings

# A silent network is noticed within about half a minute instead of the kernel's two hours.
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_COUNT = 3
TCP_USER_TIMEOUT_MS = 30_000
SERVER_KEEPALIVES = (
    "select set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)
# Whatever the server's defaults: in a zone west of UTC a time of the year 1 isn't one that Python can hold, and psycopg
# reads no other style. Not as start options, which the URL may have already and a pooler may refuse.
TIMES_IN_UTC = "select set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false)"
# Those of them that this server knows: each came with another version.
NO_TIME_LIMITS = (
    "select set_config(name, '0', false) from pg_settings where name in ('statement_timeout', "
    "'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
)

# The addresses that have let this process in. What they answer from then on is a failover, a restore or a directory
# that is down rather than a setting; written by `connect` alone.
_LET_IN: set[SecretStr] = set()

# What libpq quotes from a connection string that it can't read.
_REPEATED_TEXT = re.compile(r"""(: | after )"[^"]*".*""", re.DOTALL)


class PostgresUnavailable(TransientError):
    """Postgres can't be reached or went away: try again with backoff."""


class PostgresRefused(ConfigurationError):
    """Postgres is there and doesn't let us in, or we don't trust it: mend it as the message says, then start again."""


def connect(
    settings: PostgresSettings,
    *,
    autocommit: bool = False,
    application_name: str = "waitreg",
    opened: Callable[[psycopg.Connection[TupleRow]], None] | None = None,
) -> psycopg.Connection[TupleRow]:
    """Open a connection whose search_path is our schema alone and whose times are read in UTC.

    ``autocommit`` is psycopg's; ``application_name`` is what pg_stat_activity shows; ``opened`` gets the connection
    before anything is asked on it. Raises `PostgresUnavailable` when no connection can be had within
    ``settings.connect_timeout_s``: retry with backoff; `PostgresRefused` for an address that can't be read and, as long
    as it has never let this process in, when every host of it refuses us: wrong credentials, no such database, a
    certificate that isn't trusted.
    """
    try:
        _require_plain_host(settings.url)
        connection = psycopg.connect(
            settings.url.get_secret_value(),
            autocommit=True,
            connect_timeout=settings.connect_timeout_s,
            application_name=application_name,
            client_encoding="utf8",
            keepalives=1,
            keepalives_idle=KEEPALIVE_IDLE_S,
            keepalives_interval=KEEPALIVE_INTERVAL_S,
            keepalives_count=KEEPALIVE_COUNT,
            tcp_user_timeout=TCP_USER_TIMEOUT_MS,
        )
        if opened is not None:
            opened(connection)
        # The server too: a dead client's locks must not stand in a standby's way for two hours.
        connection.execute(SERVER_KEEPALIVES)
        connection.execute(TIMES_IN_UTC)
        connection.execute(sql.SQL("set search_path to {}").format(sql.Identifier(settings.schema_name)))
    except psycopg.OperationalError as error:
        raise _failure(str(error).strip(), known=settings.url in _LET_IN) from error
    except psycopg.ProgrammingError as error:
        # What libpq says of it may repeat the whole text, password and all; so it isn't kept as the cause either.
        raise PostgresRefused(_unreadable(str(error))) from None
    _LET_IN.add(settings.url)
    connection.autocommit = autocommit
    return connection


def lift_time_limits(connection: psycopg.Connection[TupleRow]) -> None:
    """Let one session read for as long as it takes, whatever limits the server sets by default.

    Args:
        connection: outside a transaction; keepalives and an end of the caller's own bound it still.

    Raises:
        psycopg.Error: Postgres went away; retry.
    """
    connection.execute(NO_TIME_LIMITS)
    if not connection.autocommit:
        connection.commit()


def schema_of(connection: psycopg.Connection[TupleRow]) -> str:
    """Return the schema that `connect` set, whether it exists or not."""
    row = connection.execute("select trim(both '\"' from current_setting('search_path'))").fetchone()
    assert row is not None  # a select without from always has one row
    return str(row[0])


def _failure(said: str, *, known: bool) -> PostgresRefused | PostgresUnavailable:
    refusal = refusal_of(said)
    if refusal is None:
        return PostgresUnavailable(f"Postgres can't be reached at postgres.url: {said}")
    if refusal.everywhere and not known:
        return PostgresRefused(f"Postgres can't be used: {said}. {refusal.fix}.")
    why = "it has let this process in before" if known else "another host doesn't answer"
    return PostgresUnavailable(f"Postgres can't be used now: {said}. As {why}, this may pass; if not: {refusal.fix}.")


def _require_plain_host(url: SecretStr) -> None:
    """Refuse what libpq would take for a host and name in its message: the rest of a password with an @ in it."""
    given = conninfo_to_dict(url.get_secret_value())
    # One at the beginning is a socket in the abstract namespace.
    if any("@" in part[1:] for name in ("host", "port") for part in str(given.get(name) or "").split(",")):
        raise PostgresRefused(
            "postgres.url can't be read: there is an @ in its host. Encode an @ in user or password as %40"
        )


def _unreadable(said: str) -> str:
    reason = _REPEATED_TEXT.sub("", said.strip())
    return (
        f"postgres.url can't be read: {reason}. Expected postgresql://user:password@host:5432/database "
        "(special characters in it as %XX) or libpq's key=value form"
    )
