"""`waitreg doctor`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.errors import ConfigurationError
from waitreg.commands.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "services",
        metavar="SERVICE",
        nargs="*",
        help="only what these need: processor, sink, sweeper (default: all three)",
    )


def _run(invocation: Invocation) -> int:
    from waitreg.commands.check_line import Standing
    from waitreg.commands.start_checks import SERVICES, check_all

    services = invocation.arguments.services or list(SERVICES)
    for unknown in set(services) - set(SERVICES):
        raise ConfigurationError(f"{unknown!r} is no service; they are {', '.join(SERVICES)}")
    settings = invocation.settings()
    errors = 0
    for line in check_all(settings, services):
        print(line, flush=True)
        errors += line.standing is Standing.ERROR
    print(f"{errors} to mend" if errors else f"{', '.join(services)} could start")
    return 2 if errors else 0


COMMAND: Final = Command(
    name="doctor",
    group="setting up",
    summary="look at everything a service checks when it starts, a line each",
    description="""\
Checks settings and their relations, the handler, Java and jars, Kafka and its topics, Postgres and its schema: a line
each, with what mends it. Changes nothing. Ends with 2 when something must be mended. A processor's host needs no
Postgres: `waitreg doctor processor` looks only at what a processor needs.""",
    examples=("waitreg doctor", "waitreg doctor processor --config orders.toml"),
    run=_run,
    configure=_configure,
)
