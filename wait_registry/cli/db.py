"""`waitreg db migrate|status`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from wait_registry.cli.command import Command, Invocation

if TYPE_CHECKING:
    from wait_registry.postgres.migrations import MigrationStatus


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("migrate", "status"), help="bring the schema up to date, or say what it is")


def _run(invocation: Invocation) -> int:
    from wait_registry.postgres.connection import connect
    from wait_registry.postgres.migrations import migrate, status
    from wait_registry.postgres.schema import require_schema, require_server

    settings = invocation.settings()
    with connect(settings.postgres, autocommit=True, application_name="waitreg db") as connection:
        require_server(connection)
        if invocation.arguments.action == "migrate":
            for migration in migrate(connection):
                print(f"applied {migration.version:04} {migration.name}")
        steps = status(connection)
        pending = sum(not step.applied or step.changed for step in steps)
        if not pending:
            # All that this version knows is there: it may still be a newer one's.
            require_schema(connection)
    for step in steps:
        print(f"{_standing(step):<8} {step.migration.version:04} {step.migration.name}")
    for mend in _mends(steps):
        print(f"mend: {mend}")
    schema = settings.postgres.schema_name
    print(f"schema {schema!r}: {f'{pending} to mend' if pending else 'up to date'}")
    return 2 if pending else 0


def _standing(step: MigrationStatus) -> str:
    if step.changed:
        return "changed"
    return "applied" if step.applied else "to come"


def _mends(steps: Sequence[MigrationStatus]) -> Iterator[str]:
    from wait_registry.postgres.migrations import mend_of_changed

    changed = [step.migration for step in steps if step.changed]
    yield from map(mend_of_changed, changed)
    if not changed and not all(step.applied for step in steps):
        yield "waitreg db migrate"


COMMAND: Final = Command(
    name="db",
    group="setting up",
    summary="create or migrate the Postgres schema, or say where it stands",
    description="""\
`migrate` applies the migrations that the schema (postgres.schema) doesn't have yet, in order and in one transaction;
two at once wait for each other. They only go forward. `status` lists those applied and those to come, and ends with 2
when some are to come (`waitreg db migrate`) or one was changed after it had been applied (install the version that
made the schema, or restore the file).""",
    examples=("waitreg db migrate --set postgres.url=postgresql://registry@db.internal/registry", "waitreg db status"),
    run=_run,
    configure=_configure,
)
