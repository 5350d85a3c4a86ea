"""`waitreg rebuild`."""

from __future__ import annotations

import sys

import click
import psycopg

from sink.rebuild.tables import rebuild
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.logs import configure_logging
from wait_registry.postgres.errors import error_text
from wait_registry.service.process import ended_by_interrupt
from waitreg.command import Command, Invocation


@click.command(
    "rebuild",
    cls=Command,
    examples=("waitreg rebuild --dry-run", "waitreg rebuild"),
)
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.pass_obj
def command(invocation: Invocation, dry_run: bool) -> int:
    """Rebuild the Postgres tables from the wait topic and the operations topic.

    Run it when the sink or the sweeper refuses a position as too old, and after any restore or failover of Postgres.
    It reads the whole compacted wait topic and replaces the rows and the position, partition by partition, in one
    transaction per partition. Then it replaces jobs, marks and the states of dead letters in one transaction.

    Stop the sink first: ours, or the Kafka Connect one if sink.kind=connect. Start the sink again when the rebuild has
    ended; it continues where it was. Processors continue meanwhile. After a change of sink.kind, run the rebuild once
    before you start the other sink.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "rebuild")
    try:
        with ended_by_interrupt():
            result = rebuild(settings, dry_run=dry_run, progress=_show)
    except psycopg.OperationalError as error:
        raise TransientError(f"Postgres went away during the rebuild; run it again ({error_text(error)})") from None
    except psycopg.Error as error:
        raise WaitRegistryError(f"Postgres refuses what the rebuild asks of it: {error_text(error)}") from None
    print(result)
    return 0


def _show(name: object, done: int, total: int) -> None:
    print(f"{name}: {done} of {total} offsets read", file=sys.stderr)
