"""`waitreg console`."""

from __future__ import annotations

import sys
from functools import partial

import click

from wait_registry.errors import ConfigurationError
from waitreg.command import Command, Invocation


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
        from waitreg.console.access.passwords import line_of

        try:
            click.echo(line_of(password_of, _password()))
        except UnicodeError:
            raise ConfigurationError("the password isn't text in UTF-8: write it in UTF-8") from None
        return 0
    from wait_registry.dead_letters.outcome_reader import last_redrive, outcome_rows
    from wait_registry.logs import configure_logging
    from wait_registry.service.process import ServiceProcess
    from waitreg.console.kept_line import KeptLine
    from waitreg.console.service import ConsoleService
    from waitreg.console.tables import Outcomes
    from waitreg.read_tables import age
    from waitreg.tables_age import connect_line

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
