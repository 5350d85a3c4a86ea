"""`waitreg sweeper`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.cli.service_process import ServiceProcess


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="run one sweep, then stop")


def _run(invocation: Invocation) -> int:
    from sweeper.service import SweeperService
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "sweeper")
    once: bool = invocation.arguments.once
    ServiceProcess(lambda: SweeperService(settings, once=once)).run()
    return 0


COMMAND: Final = Command(
    name="sweeper",
    group="services",
    summary="export expired registrations to the dead letter topic, each exactly once",
    description="""\
Looks into Postgres every sweeper.interval_s for registrations whose time is up, checks each against the tail of the
wait topic that the sink hasn't shown yet, and writes dead letter (or redelivery) and tombstone in one Kafka
transaction. Two sweepers at once do no harm: they fence each other partition by partition.""",
    examples=("waitreg sweeper", "waitreg sweeper --once --set log.format=console"),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 3),
)
