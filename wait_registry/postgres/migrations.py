"""Migrations: numbered SQL files, forward only, each applied once and in order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import lift_time_limits, schema_of
from wait_registry.postgres.queries import RESOURCES, sql_text

# Any constant will do; two runs of `waitreg db migrate` on one database take turns by it.
LOCK_KEY = 0x7761_6974_5F6D_6967
# While a migration waits for a table, everybody who comes after it waits too: a rebuild may hold one for minutes.
LOCK_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Migration:
    """One file ``sql/migrations/NNNN_name.sql``."""

    version: int
    name: str
    text: LiteralString

    @property
    def file(self) -> str:
        return f"sql/migrations/{self.version:04}_{self.name}.sql"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """One migration, and the checksum of the file that was applied under its number, None where none was."""

    migration: Migration
    checksum: str | None

    @property
    def applied(self) -> bool:
        return self.checksum is not None

    @property
    def changed(self) -> bool:
        """Whether another file was applied than the one that this version has."""
        return self.applied and self.checksum != self.migration.checksum


def migrations() -> tuple[Migration, ...]:
    """Return all migrations of this version, oldest first."""
    folder = resources.files(RESOURCES).joinpath("migrations")
    found = []
    for name in sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql")):
        number, _, title = name.removesuffix(".sql").partition("_")
        found.append(Migration(int(number), title, sql_text(f"migrations/{name}")))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError("sql/migrations is not numbered 1, 2, 3, ...")
    return tuple(found)


def status(connection: psycopg.Connection[TupleRow]) -> list[MigrationStatus]:
    """Return what has been applied to the connection's schema; all unapplied where there is none."""
    applied = _applied(connection)
    return [MigrationStatus(migration, applied.get(migration.version)) for migration in migrations()]


def migrate(connection: psycopg.Connection[TupleRow]) -> list[Migration]:
    """Create the connection's schema if need be and apply what is missing, in one transaction.

    ``connection`` is outside a transaction; the server's time limits are lifted for it, since a large table takes as
    long as it takes. Returns what was applied. Raises `ConfigurationError` when a migration that was applied has since
    been changed: its file must be restored, a change needs a new number; or when the schema is of a newer version.
    Raises `TransientError` when a table is in use for longer than `LOCK_TIMEOUT_S`, and when somebody cancelled it or
    it got into a deadlock: nothing was changed, try again later.
    """
    lift_time_limits(connection)
    schema = schema_of(connection)
    with connection.transaction():
        lock_migrations(connection)
        connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        steps = status(connection)
        require_unchanged(steps)
        _require_none_newer(connection, schema)
        missing = [step.migration for step in steps if not step.applied]
        # Not for the advisory lock above: that other run is doing our work.
        connection.execute("select set_config('lock_timeout', %s, true)", (f"{LOCK_TIMEOUT_S}s",))
        for migration in missing:
            _apply(connection, schema, migration)
        return missing


def _apply(connection: psycopg.Connection[TupleRow], schema: str, migration: Migration) -> None:
    try:
        connection.execute(migration.text)
        record(connection, migration)
    except psycopg.errors.LockNotAvailable as error:
        raise TransientError(
            f'a table of the schema "{schema}" was in use for more than {LOCK_TIMEOUT_S} s, nothing was changed: '
            "wait for the end of what uses it (a rebuild?) and run `waitreg db migrate` again"
        ) from error
    except (psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected) as error:
        raise TransientError(
            f'migration {migration.version:04} of the schema "{schema}" was broken off, nothing was changed: '
            f"{error.diag.message_primary}. Find out who cancelled it or what else changes these tables, and run "
            "`waitreg db migrate` again"
        ) from error


def require_unchanged(steps: Iterable[MigrationStatus]) -> None:
    """Raise `ConfigurationError` when what was applied isn't what this version would apply: tables may differ."""
    for step in steps:
        if step.changed:
            file, seen, expected = step.migration.file, str(step.checksum), step.migration.checksum
            raise ConfigurationError(
                f"{file} was applied and has changed since (applied {seen[:12]}, this version's {expected[:12]}): "
                f"{mend_of_changed(step.migration)}; what is to change needs a new migration"
            )


def mend_of_changed(migration: Migration) -> str:
    """Say what to do where another file was applied than this version's."""
    return f"install the wait registry that made the schema, or restore {migration.file} as it was"


def _require_none_newer(connection: psycopg.Connection[TupleRow], schema: str) -> None:
    found, newest = max(_applied(connection), default=0), migrations()[-1].version
    if found > newest:
        raise ConfigurationError(
            f'the schema "{schema}" has version {found}, this version knows {newest} and none newer: '
            "run `waitreg db migrate` of the newer wait registry (or set postgres.schema to another schema)"
        )


def record(connection: psycopg.Connection[TupleRow], migration: Migration) -> None:
    """Write down that ``migration`` has been applied."""
    connection.execute(
        "insert into wait_registry_migration (version, name, checksum) values (%s, %s, %s)",
        (migration.version, migration.name, migration.checksum),
    )


def lock_migrations(connection: psycopg.Connection[TupleRow]) -> None:
    """Wait until no other transaction migrates this database; held until the end of the transaction."""
    connection.execute("select pg_advisory_xact_lock(%s)", (LOCK_KEY,))


def _applied(connection: psycopg.Connection[TupleRow]) -> dict[int, str]:
    found = connection.execute(
        "select to_regclass(quote_ident(%s) || '.wait_registry_migration')", (schema_of(connection),)
    ).fetchone()
    if found is None or found[0] is None:
        return {}
    return dict(connection.execute("select version, checksum from wait_registry_migration").fetchall())
