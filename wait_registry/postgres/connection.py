"""Connections to Postgres, all opened here."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from pydantic import SecretStr

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.error_text import fix_of_passing, refusal_of
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
# West of UTC, Python can't hold a time of the year 1, and psycopg reads only this style. Not as start options, which
# the URL may have already and a pooler may refuse.
TIMES_IN_UTC = "select set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false)"
# Limited to those that this server knows; each came with another version.
NO_TIME_LIMITS = (
    "select set_config(name, '0', false) from pg_settings where name in ('statement_timeout', "
    "'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
)

# The addresses that have accepted this process. If one refuses later, a failover, a restore or a directory outage is
# likelier than a wrong setting. Written by `connect` only.
_LET_IN: set[SecretStr] = set()

# The parts of an unreadable connection string that libpq quotes.
_REPEATED_TEXT = re.compile(r"""(: | after )"[^"]*".*""", re.DOTALL)


class PostgresUnavailable(TransientError):
    """Postgres is unavailable: retry with backoff.

    Args:
        message: what happened, in words.
        fix: what helps if it lasts, if that isn't to start Postgres or to correct postgres.url.
    """

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class PostgresRefused(ConfigurationError):
    """Postgres refuses us, or we don't trust it: fix it as the message says, then restart."""


def connect(
    settings: PostgresSettings,
    *,
    autocommit: bool = False,
    application_name: str = "waitreg",
    opened: Callable[[psycopg.Connection[TupleRow]], None] | None = None,
) -> psycopg.Connection[TupleRow]:
    """Open a connection whose search_path is our schema and whose times are UTC.

    Args:
        settings: the address and the schema.
        autocommit: as in psycopg.
        application_name: shown in pg_stat_activity.
        opened: receives the connection before its first statement.

    Raises:
        PostgresUnavailable: no connection within ``settings.connect_timeout_s``; retry with backoff.
        PostgresRefused: the address can't be read; or every host of it refuses us (credentials, database, certificate),
            and none has accepted this process before.
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
        # Also on the server: a dead client's locks must not block a standby for two hours.
        connection.execute(SERVER_KEEPALIVES)
        connection.execute(TIMES_IN_UTC)
        connection.execute(sql.SQL("set search_path to {}").format(sql.Identifier(settings.schema_name)))
    except psycopg.OperationalError as error:
        raise _failure(str(error).strip(), known=settings.url in _LET_IN) from error
    except psycopg.ProgrammingError as error:
        # libpq's message may repeat the whole text with the password, so it isn't kept as the cause either.
        raise PostgresRefused(_unreadable(str(error))) from None
    _LET_IN.add(settings.url)
    connection.autocommit = autocommit
    return connection


def lift_time_limits(connection: psycopg.Connection[TupleRow]) -> None:
    """Remove the server's default time limits from one session.

    Args:
        connection: outside a transaction; keepalives and the caller's own limit still apply.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    connection.execute(NO_TIME_LIMITS)
    if not connection.autocommit:
        connection.commit()


def schema_of(connection: psycopg.Connection[TupleRow]) -> str:
    """Return the schema that `connect` set, whether it exists or not."""
    row = connection.execute("select trim(both '\"' from current_setting('search_path'))").fetchone()
    assert row is not None  # a select without from always has one row
    return str(row[0])


def _failure(message: str, *, known: bool) -> PostgresRefused | PostgresUnavailable:
    refusal = refusal_of(message)
    if refusal is None:
        return PostgresUnavailable(f"Postgres can't be reached at postgres.url: {message}", fix_of_passing(message))
    if refusal.everywhere and not known:
        return PostgresRefused(f"Postgres can't be used: {message}. {refusal.fix}.")
    why = "it has accepted this process before" if known else "another host doesn't answer"
    return PostgresUnavailable(
        f"Postgres can't be used now: {message}. As {why}, this may pass; if not: {refusal.fix}."
    )


def _require_plain_host(url: SecretStr) -> None:
    """Refuse an @ in the host, since libpq's message would quote the rest of a password with an @ in it."""
    given = conninfo_to_dict(url.get_secret_value())
    # An @ at the beginning names a socket in the abstract namespace.
    if any("@" in part[1:] for name in ("host", "port") for part in str(given.get(name) or "").split(",")):
        raise PostgresRefused(
            "postgres.url can't be read: there is an @ in its host. Encode an @ in user or password as %40"
        )


def _unreadable(message: str) -> str:
    reason = _REPEATED_TEXT.sub("", message.strip())
    return (
        f"postgres.url can't be read: {reason}. Expected postgresql://user:password@host:5432/database "
        "(special characters as %XX) or libpq's key=value form"
    )
