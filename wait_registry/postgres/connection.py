"""Connections to Postgres, all opened here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel, Transaction, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from pydantic import SecretStr

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.errors import fix_of_passing, refusal_of, server_message
from wait_registry.postgres.own_session import has_lock, has_own_session
from wait_registry.settings.postgres import PostgresSettings

# A silent network is noticed within about half a minute instead of the kernel's two hours.
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_COUNT = 3
TCP_USER_TIMEOUT_MS = 30_000
# Not as start options, which the URL may have already and a pooler may refuse.
_SETTINGS = {
    # Also on the server: a dead client's locks must not block a standby for two hours.
    "tcp_keepalives_idle": str(KEEPALIVE_IDLE_S),
    "tcp_keepalives_interval": str(KEEPALIVE_INTERVAL_S),
    "tcp_keepalives_count": str(KEEPALIVE_COUNT),
    # West of UTC, Python can't hold a time of the year 1, and psycopg reads only this style.
    "TimeZone": "UTC",
    "DateStyle": "ISO",
}
# Limited to those that this server knows; each came with another version.
_NO_TIME_LIMITS = sql.SQL(
    "select set_config(name, '0', {}) from pg_settings where name in ('statement_timeout', "
    "'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
)
COUNTING_LIMIT_MS = 60_000
# The first version that has it.
_TRANSACTION_TIMEOUT = 170_000

SHARED = (
    "the pooler at postgres.url gives the session of one client to others (as in pool_mode = transaction), but locks "
    "and temporary tables need their own: set postgres.url to Postgres itself, or to a pool in session mode"
)

LEFT_LOCK = (
    "the pooler at postgres.url gives a new client a session with the lock of an earlier one, which keeps others out: "
    "set server_reset_query = DISCARD ALL in pgbouncer, and end its sessions (RECONNECT)"
)

Kind = TypeVar("Kind", bound=psycopg.Connection[TupleRow])

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


def interrupted(error: psycopg.OperationalError) -> PostgresUnavailable:
    """Return what it means that Postgres, or a pooler in front of it, interrupted a query."""
    said = server_message(error)
    return PostgresUnavailable(f"a query to Postgres was interrupted, try again: {said}", fix_of_passing(said))


class PooledConnection(psycopg.Connection[TupleRow]):
    """A connection whose transactions begin with our settings, and leave none behind; never in autocommit.

    So it may be one to a pooler, whose next transaction is in another session. No statement is prepared there.
    """

    beginning: sql.Composed

    def cursor(self, *given: Any, **named: Any) -> Any:
        """Open a cursor, in a transaction; as in psycopg."""
        if self.info.transaction_status is TransactionStatus.IDLE:
            super().cursor().execute(self.beginning)
        return super().cursor(*given, **named)

    @contextmanager
    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Iterator[Transaction]:
        """Start a transaction, or a savepoint; as in psycopg."""
        is_outermost = self.info.transaction_status is TransactionStatus.IDLE
        with super().transaction(savepoint_name, force_rollback) as own:
            if is_outermost:
                super().cursor().execute(self.beginning)
            yield own


def connect(
    settings: PostgresSettings,
    *,
    autocommit: bool = False,
    application_name: str = "waitreg",
    opened: Callable[[psycopg.Connection[TupleRow]], None] | None = None,
) -> psycopg.Connection[TupleRow]:
    """Open a connection with a session of its own, whose search_path is our schema and whose times are UTC.

    Args:
        settings: the address and the schema.
        autocommit: as in psycopg.
        application_name: shown in pg_stat_activity.
        opened: receives the connection before its first statement.

    Raises:
        PostgresUnavailable: no connection within ``settings.connect_timeout_s``; retry with backoff.
        PostgresRefused: the address can't be read; or every host of it refuses us (credentials, database, certificate),
            and none has accepted this process before; or a pooler gives the session to others, too.
    """
    another = partial(_open, psycopg.Connection[TupleRow], settings, application_name)
    with _opened(settings):
        connection = another()
        try:
            if opened is not None:
                opened(connection)
            if not has_own_session(connection, another):
                raise PostgresRefused(SHARED)
            if has_lock(connection):
                raise PostgresRefused(LEFT_LOCK)
            connection.execute(_set(settings, connection, local=False))
        except BaseException:
            connection.close()
            raise
    connection.autocommit = autocommit
    return connection


def connect_pooled(
    settings: PostgresSettings,
    *,
    application_name: str = "waitreg",
    read_only: bool = True,
    isolation: IsolationLevel | None = None,
    statement_timeout_s: float | None = None,
) -> PooledConnection:
    """Open a connection for what needs no session, so that a pooler in transaction mode may give it any.

    Its transactions may be idle for as long as they like, while Kafka is asked.

    Args:
        settings: the address and the schema.
        application_name: shown in pg_stat_activity.
        read_only, isolation: of its transactions.
        statement_timeout_s: how long a statement may take, s; 0 is no limit, and None leaves the server's.

    Raises:
        PostgresUnavailable, PostgresRefused: as `connect`, except that a pooler is not refused.
    """
    with _opened(settings):
        connection = _open(PooledConnection, settings, application_name)
        own = {"idle_in_transaction_session_timeout": "0"}
        if connection.info.server_version >= _TRANSACTION_TIMEOUT:
            own["transaction_timeout"] = "0"
        if statement_timeout_s is not None:
            own["statement_timeout"] = str(round(statement_timeout_s * 1000))
        connection.beginning = _set(settings, connection, local=True, **own)
        connection.autocommit = False
        connection.read_only = read_only
        connection.isolation_level = isolation
    return connection


def _open(kind: type[Kind], settings: PostgresSettings, application_name: str) -> Kind:
    return kind.connect(
        settings.url.get_secret_value(),
        autocommit=True,
        # A pooler loses prepared statements, or keeps them for others.
        prepare_threshold=None if kind is PooledConnection else 5,
        connect_timeout=settings.connect_timeout_s,
        application_name=application_name,
        client_encoding="utf8",
        keepalives=1,
        keepalives_idle=KEEPALIVE_IDLE_S,
        keepalives_interval=KEEPALIVE_INTERVAL_S,
        keepalives_count=KEEPALIVE_COUNT,
        tcp_user_timeout=TCP_USER_TIMEOUT_MS,
    )


@contextmanager
def _opened(settings: PostgresSettings) -> Iterator[None]:
    """Turn psycopg's errors into ours, and note the address if there is none."""
    try:
        _require_plain_host(settings.url)
        yield
    except psycopg.OperationalError as error:
        raise _failure(str(error).strip(), known=settings.url in _LET_IN) from error
    except psycopg.ProgrammingError as error:
        # libpq's message may repeat the whole text with the password, so it isn't kept as the cause either.
        raise PostgresRefused(_unreadable(str(error))) from None
    _LET_IN.add(settings.url)


def _set(
    settings: PostgresSettings, connection: psycopg.Connection[TupleRow], *, local: bool, **more: str
) -> sql.Composed:
    search_path = sql.Identifier(settings.schema_name).as_string(connection)
    values = {**_SETTINGS, "search_path": search_path, **more}
    each = (sql.SQL("set_config({}, {}, {})").format(name, value, local) for name, value in values.items())
    return sql.SQL("select {}").format(sql.SQL(", ").join(each))


def limit_to_counting(connection: psycopg.Connection[TupleRow]) -> None:
    """Have a connection only read, on one core, and for at most `COUNTING_LIMIT_MS` per statement."""
    connection.execute("set default_transaction_read_only to on")
    connection.execute("set max_parallel_workers_per_gather to 0")
    connection.execute(f"set statement_timeout to {COUNTING_LIMIT_MS}".encode())


def lift_time_limits(connection: psycopg.Connection[TupleRow], *, local: bool = False) -> None:
    """Remove the server's default time limits from one session, or from the transaction if ``local``.

    Args:
        connection: outside a transaction, unless ``local``; keepalives and the caller's own limit still apply.
        local: whether only the transaction has no limits.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    connection.execute(_NO_TIME_LIMITS.format(local))
    if not (local or connection.autocommit):
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
