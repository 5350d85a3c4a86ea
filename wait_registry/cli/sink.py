"""`waitreg sink`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.cli.service_process import ServiceProcess


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="stop when what is in the topics now stands in Postgres")


def _run(invocation: Invocation) -> int:
    from sink.service import SinkService
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "sink")
    once: bool = invocation.arguments.once
    ServiceProcess(lambda: SinkService(settings, once=once)).run()
    return 0


COMMAND: Final = Command(
    name="sink",
    group="services",
    summary="keep Postgres a view of the wait topic and of the dead letter topics",
    description="""\
Streams the wait topic and the dead letter topics into Postgres (Spark Structured Streaming). Position and rows move
in one transaction, so that a crash neither skips nor doubles anything; while Postgres is away the sink waits for it.
A second sink stands by until the first one ends. A position older than half of the wait topic's delete.retention.ms
is refused: then run `waitreg rebuild`.""",
    examples=(
        "waitreg sink --set postgres.url=postgresql://registry@db.internal/registry",
        "waitreg sink --once",
    ),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 3),
)
