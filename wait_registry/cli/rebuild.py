"""`waitreg rebuild`."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.errors import TransientError, WaitRegistryError


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would change, change nothing")


def _run(invocation: Invocation) -> int:
    import psycopg

    from sink.rebuild import rebuild
    from wait_registry.logs import configure_logging
    from wait_registry.postgres.said import said_by

    settings = invocation.settings()
    configure_logging(settings.log, "rebuild")
    try:
        result = rebuild(settings, dry_run=invocation.arguments.dry_run, progress=_show)
    except psycopg.OperationalError as error:
        raise TransientError(f"Postgres went away during the rebuild; run it again ({said_by(error)})") from None
    except psycopg.Error as error:
        raise WaitRegistryError(f"Postgres refuses what the rebuild asks of it: {said_by(error)}") from None
    print(result)
    return 0


def _show(partition: int, done: int, total: int) -> None:
    print(f"partition {partition}: {done} of {total} offsets read", file=sys.stderr)


COMMAND: Final = Command(
    name="rebuild",
    group="looking and mending",
    summary="make Postgres exact again from the wait topic, after a restore or a long outage",
    description="""\
Reads the whole compacted wait topic and replaces, partition by partition and in one transaction each, the rows and the
position of the view. The one way on when the sink or the sweeper refuses a position as too old, and after any restore
or failover of Postgres. The sink must be stopped, ours or (sink.kind=connect) the Kafka Connect one; it may be started
again when this has ended, and goes on where it was. Processors go on meanwhile. After a change of sink.kind, run it
once before the other sink starts.""",
    examples=("waitreg rebuild --dry-run", "waitreg rebuild"),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 3),
)
