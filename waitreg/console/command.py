"""`waitreg console`."""

from __future__ import annotations

import sys

import click

from wait_registry.errors import ConfigurationError
from wait_registry.logs import configure_logging
from wait_registry.service.process import ServiceProcess
from waitreg.command import Command, Invocation
from waitreg.console.access.passwords import line_of


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
        try:
            click.echo(line_of(password_of, _password()))
        except UnicodeError:
            raise ConfigurationError("the password isn't text in UTF-8: write it in UTF-8") from None
        return 0
    # The extra with psycopg and jinja2 may be missing; then the help is still shown.
    from waitreg.console.service import ConsoleService

    settings = invocation.settings()
    configure_logging(settings.log, "console")
    ServiceProcess(lambda: ConsoleService(settings)).run()
    return 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
