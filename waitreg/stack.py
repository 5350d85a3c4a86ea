"""`waitreg stack up`."""

from __future__ import annotations

from pathlib import Path

import click

from waitreg.command import Command, Group, Invocation

_EXAMPLES = ("waitreg stack up --console", "waitreg stack up --connect", "waitreg stack up --data-dir .waitreg/stack")


@click.group("stack", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Run a Kafka broker and Postgres on this machine without Docker."""


@command.command("up", cls=Command, extra="local", examples=_EXAMPLES)
@click.option("--data-dir", metavar="DIR", type=click.Path(path_type=Path), help="Keep the data there.")
@click.option("--connect", is_flag=True, help="Start a Kafka Connect worker too (run `make connect` first).")
@click.option("--console", is_flag=True, help="Serve the console too, at console.port.")
@click.pass_obj
def up(invocation: Invocation, data_dir: Path | None, connect: bool, console: bool) -> int:
    """Start the stack, print its addresses, and keep it until Ctrl-C.

    Starts a Kafka broker and Postgres as child processes on free loopback ports, creates topics and schema, and
    prints the addresses as WAITREG_* lines for your shell. Ctrl-C, or any other end of this process, stops both and
    deletes their data and logs. With --data-dir the data remains, and the next start continues with it. Kafka's own
    kafka-... tools are not included. Needs Java 17 or newer.

    With --connect, a Kafka Connect worker runs too, with this project's plugin and Debezium's connectors, for
    `waitreg connect apply`.
    """
    from waitreg.local.command import run_stack

    run_stack(invocation.settings(), data_dir, connect=connect, console=console)
    return 0
