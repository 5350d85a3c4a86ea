"""`waitreg db migrate|status`."""

from __future__ import annotations

import click

from waitreg.command import Command, Group, Invocation

_EXAMPLES = (
    "waitreg db migrate --set postgres.url=postgresql://registry@db.internal/registry",
    "waitreg db status",
)


@click.group("db", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Create, migrate or check the Postgres schema."""


@command.command("migrate", cls=Command, extra="query", examples=_EXAMPLES)
@click.pass_obj
def migrate(invocation: Invocation) -> int:
    """Apply the migrations that the schema doesn't have yet.

    Applies them to postgres.schema in order and in one transaction. If two run at once, one waits for the other.
    Migrations only go forward.
    """
    return _show(invocation, migrating=True)


@command.command("status", cls=Command, extra="query", examples=_EXAMPLES)
@click.pass_obj
def status(invocation: Invocation) -> int:
    """List the migrations, applied and pending.

    Ends with 2 if one is pending (run `waitreg db migrate`), or if one was changed after it had been applied (install
    the version that made the schema, or restore the file).
    """
    return _show(invocation, migrating=False)


def _show(invocation: Invocation, *, migrating: bool) -> int:
    # The extra with psycopg may be missing; then the help is still shown.
    from wait_registry.postgres import connection, migrations, schema

    settings = invocation.settings()
    with connection.connect_pooled(
        settings.postgres, application_name="waitreg db", read_only=not migrating
    ) as connected:
        schema.require_server(connected)
        if migrating:
            for migration in schema.migrate_schema(connected):
                print(f"applied {migration.version:04} {migration.name}")
        steps = migrations.status(connected, schema.schema_migrations())
        for step in steps:
            print(f"{'applied' if step.applied else 'pending'}  {step.version:04} {step.name}")
        migrations.require_unchanged(steps)
        pending = sum(not step.applied for step in steps)
        if not pending:
            # Everything that this version knows is there, but the schema may still be a newer version's.
            schema.require_schema(connected)
    if pending:
        print("fix: waitreg db migrate")
    print(f"schema {settings.postgres.schema_name!r}: {f'{pending} to fix' if pending else 'up to date'}")
    return 2 if pending else 0
