"""`waitreg dlq jobs cancel`."""

from __future__ import annotations

import click

from wait_registry.records.operation import State
from waitreg.command import Command, Invocation
from waitreg.dlq.jobs.pause import ask_for


@click.command("cancel", cls=Command, examples=("waitreg dlq jobs cancel 3f2a9c4e7b10",))
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def command(invocation: Invocation, job: str, reason: str) -> int:
    """End a job before its next chunk, for good."""
    return ask_for(invocation.settings(), job, State.CANCELLED, reason)
