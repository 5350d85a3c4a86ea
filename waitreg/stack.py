"""`waitreg stack up`."""

from __future__ import annotations

import click

from waitreg.command import Entry, Group


@click.group(
    "stack",
    cls=Group,
    package="waitreg.local",
    entries={"Commands": (Entry("up", "Start the stack, print its addresses, and keep it until Ctrl-C.", "local"),)},
    examples=("waitreg stack up --console",),
)
def command() -> None:
    """Run a Kafka broker and Postgres on this machine without Docker."""
