"""`waitreg history`."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from sink.history.run import run_history
from wait_registry.logs import configure_logging
from wait_registry.service.process import ended_by_interrupt
from waitreg.command import Command, Invocation


@click.command(
    "history",
    cls=Command,
    examples=("waitreg history /var/lib/waitreg/history", "waitreg history /var/lib/waitreg/history --without-keys"),
)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--without-keys", is_flag=True, help="Leave the keys of records out; then no record is found by its key.")
@click.pass_obj
def command(invocation: Invocation, directory: Path, without_keys: bool) -> int:
    """Write how each record was settled to Parquet files.

    The wait topic forgets a settled record when it is compacted. This command reads the wait topic from where its last
    run ended, and adds one row per tombstone to DIRECTORY, by day (UTC) and consumer group. Run it from a timer, at
    least every half hour with the default segment.ms, so that it reads registrations before they are compacted away.

    It needs Kafka and Spark, not Postgres. After an interrupted run, run it again: no row is there twice.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "history")
    with ended_by_interrupt():
        result = run_history(settings, directory, with_keys=not without_keys)
    print(orjson.dumps(result).decode())
    return 0
