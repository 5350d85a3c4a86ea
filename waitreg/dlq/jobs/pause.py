"""`waitreg dlq jobs pause`."""

from __future__ import annotations

import click

from wait_registry.records.operation import State
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.redrive.operator_events import change
from waitreg.redrive.request import asker_of_command, open_job


@click.command("pause", cls=Command, examples=("waitreg dlq jobs pause 3f2a9c4e7b10",))
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def command(invocation: Invocation, job: str, reason: str) -> int:
    """Pause a job before its next chunk; `waitreg dlq redrive --resume JOB --send` continues it."""
    return ask_for(invocation.settings(), job, State.PAUSED, reason)


def ask_for(settings: Settings, job: str, state: State, reason: str) -> int:
    """Ask that a job be in another state, and say when it will be."""
    open_job(settings, job)
    change(settings, job, state, asker_of_command(), reason)
    print(f"job {job} will be {state.value} before its next chunk")
    return 0
