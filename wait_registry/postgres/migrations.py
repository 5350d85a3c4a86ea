"""Migrations: numbered SQL files, forward only, applied once and in order."""

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

# An arbitrary constant, by which two runs of `waitreg db migrate` on one database take turns.
LOCK_KEY = 0x7761_6974_5F6D_6967
# Later transactions queue behind a migration that waits for a table, which a rebuild may hold for minutes.
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
    """One migration, and the checksum of the file that was applied under its number, or None."""

    migration: Migration
    checksum: str | None

    @property
    def applied(self) -> bool:
        return self.checksum is not None

    @property
    def changed(self) -> bool:
        """Whether the applied file differs from this version's."""
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
    """Return the state of every migration in the connection's schema, which need not exist."""
    applied = applied_migrations(connection)
    return [MigrationStatus(migration, applied.get(migration.version)) for migration in migrations()]


def migrate(connection: psycopg.Connection[TupleRow]) -> list[Migration]:
    """Create the connection's schema if necessary and apply the missing migrations, in one transaction.

    Args:
        connection: outside a transaction; the server's time limits are removed, since large tables take long.

    Returns:
        The migrations that were applied.

    Raises:
        ConfigurationError: an applied migration was changed later (restore its file; a change needs a new number), or
            the schema is newer.
        TransientError: a table was in use for longer than `LOCK_TIMEOUT_S`, or the migration was canceled or
            deadlocked; nothing was changed, retry later.
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
        # Not for the advisory lock above, whose other holder does the same work.
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
            "wait until it is free (a rebuild may use it) and run `waitreg db migrate` again"
        ) from error
    except (psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected) as error:
        raise TransientError(
            f'migration {migration.version:04} of the schema "{schema}" was interrupted, nothing was changed: '
            f"{error.diag.message_primary}. Find out what canceled it or changes these tables, and run "
            "`waitreg db migrate` again"
        ) from error


def require_unchanged(steps: Iterable[MigrationStatus]) -> None:
    """Raise ConfigurationError if an applied migration differs from this version's, since tables may differ."""
    for step in steps:
        if step.changed:
            file, seen, expected = step.migration.file, str(step.checksum), step.migration.checksum
            raise ConfigurationError(
                f"{file} was applied and has changed since (applied {seen[:12]}, this version's {expected[:12]}): "
                f"{fix_of_changed(step.migration)}; a change needs a new migration"
            )


def fix_of_changed(migration: Migration) -> str:
    """Return the fix if another file was applied than this version's."""
    return f"install the wait registry that created the schema, or restore {migration.file} as it was"


def _require_none_newer(connection: psycopg.Connection[TupleRow], schema: str) -> None:
    found, newest = max(applied_migrations(connection), default=0), migrations()[-1].version
    if found > newest:
        raise ConfigurationError(
            f'the schema "{schema}" has version {found}, newer than version {newest} of this wait registry: '
            "run `waitreg db migrate` of the newer wait registry (or set postgres.schema to another schema)"
        )


def record(connection: psycopg.Connection[TupleRow], migration: Migration) -> None:
    """Record that a migration was applied."""
    connection.execute(
        "insert into wait_registry_migration (version, name, checksum) values (%s, %s, %s)",
        (migration.version, migration.name, migration.checksum),
    )


def lock_migrations(connection: psycopg.Connection[TupleRow]) -> None:
    """Wait until no other transaction migrates this database; held until the end of the transaction."""
    connection.execute("select pg_advisory_xact_lock(%s)", (LOCK_KEY,))


def applied_migrations(connection: psycopg.Connection[TupleRow]) -> dict[int, str]:
    """Return the checksum of each applied migration of the connection's schema, by number; none without a schema."""
    found = connection.execute(
        "select to_regclass(quote_ident(%s) || '.wait_registry_migration')", (schema_of(connection),)
    ).fetchone()
    if found is None or found[0] is None:
        return {}
    return dict(connection.execute("select version, checksum from wait_registry_migration").fetchall())
