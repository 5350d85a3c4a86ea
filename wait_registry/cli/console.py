"""`waitreg console`."""

from __future__ import annotations

from functools import partial

import click

from wait_registry.cli.command import Command, Invocation


@click.command(
    "console",
    cls=Command,
    extra="console",
    examples=("waitreg console --set console.port=9000", "waitreg console --password-of alice"),
)
@click.option("--password-of", metavar="NAME", help="Ask for a password, print its line for console.users.")
@click.pass_obj
def command(invocation: Invocation, password_of: str | None) -> int:
    """Serve web pages of what waits and what failed.

    The pages are the questions of `waitreg query`, and the dead letters. They only read, from Postgres. Open the
    address that the log names. By default, the console listens on loopback, and each user of this machine sees
    everything; console.authentication and console.grants say otherwise.
    """
    if password_of is not None:
        from console.access.passwords import line_of

        click.echo(line_of(password_of, click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)))
        return 0
    from console.service import ConsoleService
    from redrive.outcomes import outcome_rows
    from wait_registry.cli.read_tables import age
    from wait_registry.cli.service_process import ServiceProcess
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "console")
    outcomes = partial(outcome_rows, settings)
    ServiceProcess(lambda: ConsoleService(settings, lambda connection: age(connection, settings), outcomes)).run()
    return 0
