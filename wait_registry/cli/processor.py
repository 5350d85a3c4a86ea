"""`waitreg processor`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.cli.handler_path import make_handlers_importable
from wait_registry.cli.service_process import ServiceProcess


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="stop when what is in the topics now has been worked off")


def _run(invocation: Invocation) -> int:
    from processor.service import ProcessorService
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "processor")
    make_handlers_importable()
    once: bool = invocation.arguments.once
    ServiceProcess(lambda: ProcessorService(settings, once=once)).run()
    return 0


COMMAND: Final = Command(
    name="processor",
    group="services",
    summary="consume the input topics and call your handler, at most N records at once",
    description="""\
Consumes processor.topics as processor.group. Registers each record in the wait topic, commits its offset, calls the
handler (a Python `module:name`, looked up from the current directory on, or an http(s) URL to POST to) with at most
processor.max_in_flight records at once, and writes the tombstone; a record whose handler gives up goes to the dead
letter topic first. Needs Kafka, never Postgres. Start as many of a group as the input has partitions. SIGTERM and
Ctrl-C let running handlers finish (processor.drain_timeout_s); a second one ends the process at once: what is in
flight then stands in the registry.""",
    examples=(
        "waitreg processor --set processor.group=orders --set processor.topics=orders,refunds \\",
        "    --set processor.handler=shop.orders:handle",
        "WAITREG_PROCESSOR__HANDLER=http://localhost:8080/orders waitreg processor --config orders.toml --once",
    ),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 3),
)
