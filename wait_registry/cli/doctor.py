"""`waitreg doctor`."""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    from wait_registry.cli.check_line import CheckLine
    from wait_registry.cli.checks.check import Concerned
    from wait_registry.settings.root import Settings


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "services",
        metavar="SERVICE",
        nargs="*",
        help="only what these need: processor, sink, sweeper (default: all three; no sink with sink.kind=connect; with "
        "sweeper.kind=connect in the sweeper's place `connect`, that is the view and what is due)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, for scripts")


def _run(invocation: Invocation) -> int:
    # Clients log what they meet; it comes back as the line of the check that met it.
    logging.getLogger().addHandler(logging.NullHandler())
    return _run_json(invocation) if invocation.arguments.json else _run_text(invocation)


def _run_text(invocation: Invocation) -> int:
    from wait_registry.cli.check_report import exit_code, summary, to_mend
    from wait_registry.cli.start_checks import check_all

    services = _services(invocation)
    lines = []
    for line in check_all(invocation.settings(), services, _tell):
        print(line, flush=True)
        lines.append(line)
    for sentence in to_mend(lines):
        print(sentence)
    print(summary(lines, f"{', '.join(services)} could start (how well a running one does is another question)"))
    return exit_code(lines)


def _run_json(invocation: Invocation) -> int:
    from wait_registry.cli.check_report import as_json, exit_code
    from wait_registry.cli.start_checks import check_all

    services: list[Concerned] = []
    try:
        services = _services(invocation)
        # A handler's module may print what it likes.
        with redirect_stdout(sys.stderr):
            lines = list(check_all(invocation.settings(), services, _tell))
    except ConfigurationError as error:
        lines = [_refused(error)]
    print(as_json(lines, services))
    return exit_code(lines)


def _services(invocation: Invocation) -> list[Concerned]:
    from wait_registry.cli.start_checks import CONCERNED

    given: list[Concerned] = invocation.arguments.services
    for unknown in sorted(set(given) - set(CONCERNED)):
        raise ConfigurationError(f"{unknown!r} is no service; they are {', '.join(CONCERNED)}")
    return [name for name in CONCERNED if name in given] or services_at_work(invocation.settings())


def services_at_work(settings: Settings) -> list[Concerned]:
    """Return what these settings are for: beside a Connect sink or source one of ours would only be refused."""
    from wait_registry.settings.sink import SinkKind
    from wait_registry.settings.sweeper import SweeperKind

    sink: list[Concerned] = ["sink"] if settings.sink.kind is SinkKind.SPARK else []
    return ["processor", *sink, "sweeper" if settings.sweeper.kind is SweeperKind.SPARK else "connect"]


def _refused(error: ConfigurationError) -> CheckLine:
    from wait_registry.cli.check_line import CheckLine, Standing

    mend = "correct the command line, the environment, .env or waitreg.toml; `waitreg config --all` lists all settings"
    return CheckLine("settings", Standing.ERROR, str(error), mend, "settings")


def _tell(sentence: str) -> None:
    print(f"          {sentence}", file=sys.stderr, flush=True)


COMMAND: Final = Command(
    name="doctor",
    group="setting up",
    summary="look at everything a service checks when it starts, and at how it does",
    description="""\
Looks, a line each, with what mends it: settings and their relations, versions, handler, Java and jars, telemetry port,
disk; Kafka, its topics and what this user may do there; Postgres, its schema and what this role may do there; clocks;
how far and how fresh the view is, what is due, what the group has still to consume. Changes nothing, and no check takes
longer than kafka.request_timeout_s and postgres.connect_timeout_s let it. A processor's host needs no Postgres:
`waitreg doctor processor` looks only at what a processor needs. Ends with 0 when nothing must be mended (warnings
may stand), with 1 when all that fails is that Kafka or Postgres doesn't answer, else with 2.

--json prints one object: "version", "services", "errors", "warnings" (counts) and "checks", a list of objects with
"id" (stable, e.g. kafka.reachable, topic.wait.cleanup.policy, postgres.schema, group.offsets; refused settings are
the one check "settings"), "subject", "standing" (ok, warning, error, skipped), "seen" and "mend" (empty when ok).""",
    examples=(
        "waitreg doctor",
        "waitreg doctor processor --config orders.toml",
        "waitreg doctor sink sweeper --json",
    ),
    run=_run,
    configure=_configure,
)
