"""`waitreg console`."""

from __future__ import annotations

import sys
from functools import partial

import click

from wait_registry.cli.command import Command, Invocation
from wait_registry.errors import ConfigurationError


@click.command(
    "console",
    cls=Command,
    extra="console",
    examples=("waitreg console --set console.port=9000", "waitreg console --password-of alice"),
)
@click.option(
    "--password-of",
    metavar="NAME",
    help="Ask for a password, or read it from a pipe, and print its line for console.users.",
)
@click.pass_obj
def command(invocation: Invocation, password_of: str | None) -> int:
    """Serve web pages of what waits and what failed.

    The pages are the questions of `waitreg query`, and the dead letters. They only read, from Postgres; with
    console.read_only set to false, operators redrive, archive and restore dead letters there. Open the address that the
    log names. By default, the console listens on loopback, and each user of this machine sees
    everything; console.authentication and console.grants say otherwise.
    """
    if password_of is not None:
        from console.access.passwords import line_of

        try:
            click.echo(line_of(password_of, _password()))
        except UnicodeError:
            raise ConfigurationError("the password isn't text in UTF-8: write it in UTF-8") from None
        return 0
    from console.service import ConsoleService
    from console.tables import Outcomes
    from redrive.outcomes import last_redrive, outcome_rows
    from wait_registry.cli.kept_line import KeptLine
    from wait_registry.cli.read_tables import age
    from wait_registry.cli.service_process import ServiceProcess
    from wait_registry.cli.tables_age import connect_line
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "console")
    ask_kafka = KeptLine(connect_line)
    outcomes = Outcomes(partial(outcome_rows, settings), partial(last_redrive, settings))
    ServiceProcess(lambda: ConsoleService(settings, lambda tables: age(tables, settings, ask_kafka), outcomes)).run()
    return 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
