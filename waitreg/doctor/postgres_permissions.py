"""Check what this role may do in Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from wait_registry.diagnosis import Diagnosis, error, ok
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings
from waitreg.doctor.postgres_server import read_only_connection

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

_SQL: Final = Queries("doctor")
FIX: Final = "grant what is missing to the role of postgres.url"
_ALL: Final = ("select", "insert", "update", "delete")
TABLES: Final[Mapping[TopicUser, Mapping[str, tuple[str, ...]]]] = {
    "sink": {
        "wait_registry_migration": ("select",),
        "wait": _ALL,
        "sink_progress": _ALL,
        "dead_letter": ("select", "insert", "update"),
        "late_outcome": ("select", "insert"),
        "quarantine": ("select", "insert"),
        "operation": _ALL,
        "dead_letter_mark": _ALL,
        "operator_event": _ALL,
    },
    # It deletes rows after sweeper.retention_days.
    "sweeper": {
        "wait_registry_migration": ("select",),
        "wait": ("select",),
        "sink_progress": ("select",),
        # To see whether a Kafka Connect source exports; then the sweeper must not.
        "expired_outbox": ("select",),
        "sweep": ("select", "insert", "delete"),
        "dead_letter": ("select", "delete"),
        "late_outcome": ("select", "delete"),
        "quarantine": ("select", "delete"),
        "operation": ("select", "delete"),
        "dead_letter_mark": ("select", "delete"),
        "operator_event": ("select", "delete"),
    },
    "redrive": {
        "wait_registry_migration": ("select",),
        "wait": ("select",),
        "sink_progress": ("select",),
        "dead_letter": ("select",),
        "operation": ("select",),
        "dead_letter_mark": ("select",),
        "operator_event": ("select",),
    },
}


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
    from psycopg.sql import Identifier

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
