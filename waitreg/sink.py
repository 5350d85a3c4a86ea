"""`waitreg sink`."""

from __future__ import annotations

import click

from sink.service import SinkService
from wait_registry.logs import configure_logging
from wait_registry.service.process import ServiceProcess
from waitreg.command import Command, Invocation


@click.command(
    "sink",
    cls=Command,
    examples=(
        "waitreg sink --set postgres.url=postgresql://registry@db.internal/registry",
        "waitreg sink --once",
    ),
)
@click.option("--once", is_flag=True, help="Stop when every record that is in the topics now is in Postgres.")
@click.pass_obj
def command(invocation: Invocation, once: bool) -> int:
    """Copy the wait topic and the dead letter topics into Postgres.

    Rows and position change in one transaction, so a crash neither skips nor repeats a record. While Postgres is
    down, the sink waits for it. A second sink stands by until the first one ends. The sink refuses a position that is
    older than half of the wait topic's delete.retention.ms; then run `waitreg rebuild`.

    With sink.kind=connect it copies the operations topic alone, for `waitreg dlq redrive`. A Kafka Connect sink then
    copies the others.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "sink")
    ServiceProcess(lambda: SinkService(settings, once=once)).run()
    return 0
