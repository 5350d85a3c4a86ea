"""Check that Postgres answers, is new enough and has the schema, and what this role may do there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import psycopg
from psycopg.rows import TupleRow
from psycopg.sql import Identifier

from wait_registry.diagnosis import Diagnosis, error, ok
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.postgres.connection import PostgresUnavailable, connect, connect_pooled, interrupted
from wait_registry.postgres.queries import Queries
from wait_registry.postgres.schema import require_schema, require_server, schema_version
from wait_registry.settings.tree import Settings
from waitreg.doctor import clocks

REACH_FIX: Final = "start Postgres, or correct postgres.url (postgres.url_file takes the path of a file with it)"
SCHEMA_FIX: Final = "do what the message says, or correct postgres.schema"
SESSION_FIX: Final = "do what the message says: docs/poolers.md lists what needs a session"
_SQL: Final = Queries("doctor")
_SAMPLES: Final = 5
PERMISSIONS_FIX: Final = "grant what is missing to the role of postgres.url"
_ALL: Final = ("select", "insert", "update", "delete")
_SELECT: Final = ("select",)
# The sweeper deletes rows after sweeper.retention_days.
_SWEPT: Final = ("select", "delete")
TABLES: Final[Mapping[TopicUser, Mapping[str, tuple[str, ...]]]] = {
    "sink": {
        "wait_registry_migration": _SELECT,
        **dict.fromkeys(("wait", "sink_progress", "operation", "dead_letter_mark", "operator_event"), _ALL),
        "dead_letter": ("select", "insert", "update"),
        **dict.fromkeys(("late_outcome", "quarantine"), ("select", "insert")),
    },
    "sweeper": {
        # The outbox shows whether a Kafka Connect source exports; then the sweeper must not.
        **dict.fromkeys(("wait_registry_migration", "wait", "sink_progress", "expired_outbox"), _SELECT),
        "sweep": ("select", "insert", "delete"),
        **dict.fromkeys(("dead_letter", "late_outcome", "quarantine"), _SWEPT),
        **dict.fromkeys(("operation", "dead_letter_mark", "operator_event"), _SWEPT),
    },
    "redrive": {
        **dict.fromkeys(("wait_registry_migration", "wait", "sink_progress", "dead_letter"), _SELECT),
        **dict.fromkeys(("operation", "dead_letter_mark", "operator_event"), _SELECT),
    },
}


@contextmanager
def read_only_connection(settings: Settings) -> Iterator[psycopg.Connection[TupleRow]]:
    """Open a connection that can't write, with a timeout of postgres.connect_timeout_s for each statement.

    Raises:
        PostgresUnavailable: Postgres doesn't answer, refuses us, or breaks the connection.
    """
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
    with connect(settings.postgres, autocommit=True, application_name="waitreg doctor"):
        yield ok("each connection has a session of its own")


def schema(settings: Settings) -> Iterator[Diagnosis]:
    """Compare the schema's version and migrations with ours; raises as `require_schema`, whose message has the fix."""
    with read_only_connection(settings) as connection:
        require_schema(connection)
        version = schema_version(connection)
    yield ok(f"{settings.postgres.schema_name!r} at version {version}")


def postgres_now(connection: psycopg.Connection[TupleRow]) -> datetime:
    """Return the time of Postgres."""
    row = connection.execute(_SQL["clock"]).fetchone()
    assert row is not None  # a select without from always has one row
    now: datetime = row[0]
    return now


def clock(settings: Settings) -> Iterator[Diagnosis]:
    """Ask Postgres for its time, several times; the fastest answer is the most exact."""
    with read_only_connection(settings) as connection:
        answers = []
        for _ in range(_SAMPLES):
            before_s = time.time()
            now = postgres_now(connection)
            after_s = time.time()
            answers.append((after_s - before_s, now.timestamp() - (before_s + after_s) / 2))
    round_trip_s, ahead_s = min(answers)
    seen = f"{ahead_s:+.3f} s against this host's, known to {round_trip_s / 2:.3f} s"
    yield clocks.difference_line(seen, max(0.0, abs(ahead_s) - round_trip_s / 2), settings)


def permissions(service: TopicUser, settings: Settings) -> Iterator[Diagnosis]:
    """Compare the role's permissions with what the service does; nothing is tried."""
    with read_only_connection(settings) as connection:
        role = connection.info.user
        lacking = list(_lacking(connection, service, settings.postgres.schema_name))
    if not lacking:
        count = sum(map(len, TABLES[service].values()))
        yield ok(f"role {role} has all {count} permissions on {len(TABLES[service])} tables")
    for seen, grant in lacking:
        yield error(f"role {role} has no permission to {seen}", f"psql: {grant};")


def _lacking(connection: psycopg.Connection[TupleRow], service: TopicUser, schema: str) -> Iterator[tuple[str, str]]:
    names = (connection.info.user, connection.info.dbname, schema)
    role, database, quoted = (Identifier(name).as_string(connection) for name in names)
    row = connection.execute(_SQL["other_permissions"], {"schema": schema}).fetchone()
    assert row is not None  # a select without from always has one row
    usage, temporary, locks = row
    if usage is False:  # null: there is no such schema, which another check reports
        yield f"use the schema {schema}", f"grant usage on schema {quoted} to {role}"
    if not temporary and service == "sink":
        yield "make temporary tables", f"grant temporary on database {database} to {role}"
    if not locks:
        yield "take advisory locks", f"grant execute on function pg_try_advisory_lock(bigint) to {role}"
    wanted = [(table, privilege) for table, privileges in TABLES[service].items() for privilege in privileges]
    question = {"schema": schema, "tables": [t for t, _ in wanted], "privileges": [p for _, p in wanted]}
    missing: dict[str, list[str]] = {}
    for table, privilege in connection.execute(_SQL["missing_on_tables"], question):
        missing.setdefault(table, []).append(privilege)
    for table, privileges in missing.items():
        rights = ", ".join(privileges)
        yield f"{rights} on {table}", f'grant {rights} on {quoted}."{table}" to {role}'
