"""`waitreg doctor`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Final

import click

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import ConfigurationError
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg import check_report
from waitreg.command import Command, Invocation
from waitreg.doctor.catalogue import check_all
from waitreg.doctor.check import Concerned

CONCERNED: Final[tuple[Concerned, ...]] = ("processor", "sink", "sweeper", "connect", "redrive")


@click.command(
    "doctor",
    cls=Command,
    examples=(
        "waitreg doctor",
        "waitreg doctor processor --config orders.toml",
        "waitreg doctor sink sweeper --json",
        "waitreg doctor redrive --set processor.group=shop",
    ),
)
@click.argument("services", metavar="[SERVICE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
@click.pass_obj
def command(invocation: Invocation, services: tuple[str, ...], as_json: bool) -> int:
    """Check settings, Kafka, Postgres and services, and print a fix for each problem.

    Checks settings and their relations, versions, certificates, handler, Java and jars, telemetry port and disk; Kafka,
    what its brokers support, its topics and the permissions of this user; Postgres, its schema and the permissions of
    this role; clocks; how current the tables are, which rows are due, and what the group has still to consume. It
    changes nothing. No check takes longer than kafka.request_timeout_s and postgres.connect_timeout_s allow.

    Name services to check only what they need: processor, sink or sweeper. The host of a processor needs no Postgres.
    Without names it checks all three; with sink.kind=connect no sink, and with sweeper.kind=connect `connect`, the
    tables and the due rows, in the sweeper's place. The name `redrive` checks what the user of `waitreg dlq redrive`
    needs for the group of processor.group.

    Ends with 0 if there is no error (there may be warnings), with 1 if the only errors are that Kafka or Postgres
    doesn't answer, else with 2.

    --json prints one object: "version", "services", "errors", "warnings" (counts) and "checks", a list of objects
    with "id" (stable, e.g. kafka.reachable, topic.wait.cleanup.policy, postgres.schema, group.offsets; refused
    settings are the one check "settings"), "subject", "severity" (ok, warning, error, skipped), "message" and
    "fix" (empty when ok). The lines for people then go to standard error.
    """
    # Clients log what they meet; it comes back as the line of the check that met it.
    logging.getLogger().addHandler(logging.NullHandler())
    concerned: list[Concerned] = []
    lines: list[Diagnosis] = []
    try:
        concerned, settings = _given(services), invocation.settings()
        concerned = concerned or services_of(settings)
        # A handler's module may print what it likes.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            for line in check_all(settings, concerned, _notify):
                print(check_report.shown(line), flush=True)
                lines.append(line)
    except ConfigurationError as error:
        if not as_json:
            raise
        lines = [_refused(error)]
    summary = check_report.summary(lines, f"start-up checks passed for {', '.join(concerned)}")
    print(check_report.as_json(lines, concerned) if as_json else summary)
    return check_report.exit_code(lines)


def _given(services: Sequence[str]) -> list[Concerned]:
    """Return the named services in the order of `CONCERNED`; none if none is named."""
    for unknown in sorted(set(services) - set(CONCERNED)):
        raise ConfigurationError(f"{unknown!r} is no service; the services are {', '.join(CONCERNED)}")
    return [name for name in CONCERNED if name in services]


def services_of(settings: Settings) -> list[Concerned]:
    """Return the services that these settings are for; with a Connect sink or source, ours would be refused."""
    sink: list[Concerned] = ["sink"] if settings.sink.kind is SinkKind.SPARK else []
    return ["processor", *sink, "sweeper" if settings.sweeper.kind is SweeperKind.SPARK else "connect"]


def _refused(error: ConfigurationError) -> Diagnosis:
    fix = "correct the command line, the environment, .env or waitreg.toml; `waitreg config --all` lists all settings"
    return Diagnosis("settings", Severity.ERROR, str(error), fix, "settings")


def _notify(sentence: str) -> None:
    print(f"          {sentence}", file=sys.stderr, flush=True)
