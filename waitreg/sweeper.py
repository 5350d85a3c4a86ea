"""`waitreg sweeper`."""

from __future__ import annotations

from functools import partial

import click

from sweeper.connect_policy import require_no_source_at_work, tables_policy
from sweeper.service import SweeperService
from wait_registry.logs import configure_logging
from wait_registry.service.process import ServiceProcess
from waitreg.command import Command, Invocation


@click.command(
    "sweeper",
    cls=Command,
    examples=("waitreg sweeper", "waitreg sweeper --once --set log.format=console"),
)
@click.option("--once", is_flag=True, help="Run one sweep, then stop.")
@click.pass_obj
def command(invocation: Invocation, once: bool) -> int:
    """Export expired registrations to the dead letter topic.

    Every sweeper.interval_s, queries Postgres for expired registrations, checks each against the tail of the wait
    topic, which the sink hasn't copied yet, and writes the dead letter (or redelivery) and the tombstone in one Kafka
    transaction. Two sweepers at once do no harm, because they fence each other partition by partition.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "sweeper")
    tables, startable = tables_policy(settings), partial(require_no_source_at_work, settings)
    ServiceProcess(lambda: SweeperService(settings, once=once, tables=tables, require_startable=startable)).run()
    return 0
