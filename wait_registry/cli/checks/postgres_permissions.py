"""What is this role allowed to do in Postgres?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from wait_registry.cli.checks.postgres_server import asking
from wait_registry.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

FIX: Final = "grant what is missing to the role of postgres.url"
_ALL: Final = ("select", "insert", "update", "delete")
TABLES: Final[Mapping[Service, Mapping[str, tuple[str, ...]]]] = {
    "sink": {
        "wait_registry_migration": ("select",),
        "wait": _ALL,
        "sink_progress": _ALL,
        "dead_letter": ("select", "insert", "update"),
        "late_outcome": ("select", "insert"),
        "quarantine": ("select", "insert"),
    },
    # Its deletes are the retention's.
    "sweeper": {
        "wait_registry_migration": ("select",),
        "wait": ("select",),
        "sink_progress": ("select",),
        # To see that a Kafka Connect source exports, beside which it must not.
        "expired_outbox": ("select",),
        "sweep": ("select", "insert", "delete"),
        "dead_letter": ("select", "delete"),
        "late_outcome": ("select", "delete"),
        "quarantine": ("select", "delete"),
    },
}
# By oid: a name can't be looked up in a schema that one may not use.
_ON_TABLES: Final = """
select wanted.name, wanted.privilege
from unnest(%(tables)s::text[], %(privileges)s::text[]) as wanted (name, privilege)
join pg_namespace as schema on schema.nspname = %(schema)s
join pg_class as found on found.relnamespace = schema.oid and found.relname = wanted.name
where not has_table_privilege(found.oid, wanted.privilege)
"""
_ON_THE_REST: Final = """
select
    (select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = %(schema)s),
    has_database_privilege(current_database(), 'temporary'),
    has_function_privilege('pg_try_advisory_lock(bigint)', 'execute')
"""


def permissions(service: Service, settings: Settings) -> Iterator[Diagnosis]:
    """Compare the role's rights with what the service does; nothing is tried."""
    subject = f"permissions in Postgres ({service})"
    with asking(settings) as connection:
        role, database = connection.info.user, connection.info.dbname
        lacking = list(_lacking(connection, service, settings.postgres.schema_name, f'"{role}"', f'"{database}"'))
    if not lacking:
        count = sum(map(len, TABLES[service].values()))
        yield Diagnosis(subject, Severity.OK, f"role {role} has all {count} rights on {len(TABLES[service])} tables")
    for seen, grant in lacking:
        yield Diagnosis(subject, Severity.ERROR, f"role {role} has no right to {seen}", f"psql: {grant};")


def _lacking(
    connection: psycopg.Connection[TupleRow], service: Service, schema: str, role: str, database: str
) -> Iterator[tuple[str, str]]:
    row = connection.execute(_ON_THE_REST, {"schema": schema}).fetchone()
    assert row is not None  # a select without from always has one row
    usage, temporary, locks = row
    if usage is False:  # null: no such schema, which another check has said
        yield f"use the schema {schema}", f'grant usage on schema "{schema}" to {role}'
    if not temporary and service == "sink":
        yield "make temporary tables", f"grant temporary on database {database} to {role}"
    if not locks:
        yield "take advisory locks", f"grant execute on function pg_try_advisory_lock(bigint) to {role}"
    wanted = [(table, privilege) for table, privileges in TABLES[service].items() for privilege in privileges]
    question = {"schema": schema, "tables": [t for t, _ in wanted], "privileges": [p for _, p in wanted]}
    missing: dict[str, list[str]] = {}
    for table, privilege in connection.execute(_ON_TABLES, question):
        missing.setdefault(table, []).append(privilege)
    for table, privileges in missing.items():
        rights = ", ".join(privileges)
        yield f"{rights} on {table}", f'grant {rights} on "{schema}"."{table}" to {role}'
