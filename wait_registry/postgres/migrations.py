"""Migrations of a schema: numbered SQL files, forward only, applied once and in order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import PurePath
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import lift_time_limits, schema_of

# An arbitrary constant, by which two runs of `waitreg db migrate` on one database take turns.
LOCK_KEY = 0x7761_6974_5F6D_6967
# Later transactions queue behind a migration that waits for a table, which a rebuild may hold for minutes.
LOCK_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Migration:
    """One file that leads from the version before to ``version``.

    ``applied`` is the checksum of the file that a schema has under this number, or None.
    """

    version: int
    file: str
    text: LiteralString
    applied: str | None = None

    @property
    def name(self) -> str:
        """Return the file's name without folder, number and ending."""
        return PurePath(self.file).stem.removeprefix(f"{self.version:04}_")

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def changed(self) -> bool:
        """Whether the applied file differs from this version's."""
        return self.applied not in (None, self.checksum)


def migrations(folder: Traversable, *, first: int) -> tuple[Migration, ...]:
    """Return the files ``NNNN_name.sql`` of a folder, oldest first; none if there is no such folder.

    Args:
        folder: below ``sql/``.
        first: the number of its first file.

    Raises:
        ValueError: the numbers have a gap.
    """
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql")) if folder.is_dir() else []
    found = tuple(
        Migration(int(name.partition("_")[0]), f"sql/{folder.name}/{name}", (folder / name).read_text(encoding="utf-8"))
        for name in names
    )
    if [migration.version for migration in found] != list(range(first, first + len(found))):
        raise ValueError(f"sql/{folder.name} is not numbered {first}, {first + 1}, {first + 2}, ...")
    return found


def status(connection: psycopg.Connection[TupleRow], known: Sequence[Migration]) -> list[Migration]:
    """Return each known migration as it is in the connection's schema, which need not exist."""
    applied = applied_migrations(connection)
    return [replace(migration, applied=applied.get(migration.version)) for migration in known]


def migrate(connection: psycopg.Connection[TupleRow], known: Sequence[Migration]) -> list[Migration]:
    """Create the connection's schema if necessary and apply the missing migrations, in one transaction.

    Args:
        connection: outside a transaction; the server's time limits are removed, since large tables take long.
        known: all migrations of this version, oldest first.

    Returns:
        The migrations that were applied.

    Raises:
        ConfigurationError: an applied migration was changed later (restore its file; a change needs a new number), or
            the schema is newer.
        TransientError: a table was in use for longer than `LOCK_TIMEOUT_S`, or the migration was canceled or
            deadlocked; nothing was changed, retry later.
    """
    with connection.transaction():
        lift_time_limits(connection, local=True)
        schema = schema_of(connection)
        connection.execute("select pg_advisory_xact_lock(%s)", (LOCK_KEY,))
        connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        steps = status(connection, known)
        require_unchanged(steps)
        _require_none_newer(connection, schema, known[-1].version)
        missing = [step for step in steps if step.applied is None]
        # Not for the advisory lock above, whose other holder does the same work.
        connection.execute("select set_config('lock_timeout', %s, true)", (f"{LOCK_TIMEOUT_S}s",))
        for migration in missing:
            _apply(connection, schema, migration)
        return missing


def _apply(connection: psycopg.Connection[TupleRow], schema: str, migration: Migration) -> None:
    try:
        connection.execute(migration.text)
        connection.execute(
            "insert into wait_registry_migration (version, name, checksum) values (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )
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


def require_unchanged(steps: Iterable[Migration]) -> None:
    """Raise ConfigurationError if an applied migration differs from this version's, since tables may differ."""
    for step in steps:
        if step.changed:
            seen, expected = str(step.applied)[:12], step.checksum[:12]
            raise ConfigurationError(
                f"{step.file} was applied and has changed since (applied {seen}, this version's {expected}): "
                f"install the wait registry that created the schema, or restore {step.file} as it was; a change needs "
                "a new migration"
            )


def _require_none_newer(connection: psycopg.Connection[TupleRow], schema: str, newest: int) -> None:
    found = max(applied_migrations(connection), default=0)
    if found > newest:
        raise ConfigurationError(
            f'the schema "{schema}" has version {found}, newer than version {newest} of this wait registry: '
            "run `waitreg db migrate` of the newer wait registry (or set postgres.schema to another schema)"
        )


def applied_migrations(connection: psycopg.Connection[TupleRow]) -> dict[int, str]:
    """Return the checksum of each applied migration of the connection's schema, by number; none without a schema."""
    found = connection.execute(
        "select to_regclass(quote_ident(%s) || '.wait_registry_migration')", (schema_of(connection),)
    ).fetchone()
    if found is None or found[0] is None:
        return {}
    return dict(connection.execute("select version, checksum from wait_registry_migration").fetchall())
