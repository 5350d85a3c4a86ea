"""`waitreg dlq jobs approve`."""

from __future__ import annotations

import click

from waitreg.command import Command, Invocation
from waitreg.redrive.approval import require_awaiting
from waitreg.redrive.operator_events import approve
from waitreg.redrive.request import asker_of_command, open_job


@click.command("approve", cls=Command, examples=("waitreg dlq jobs approve 3f2a9c4e7b10 --reason 'looked at 20'",))
@click.argument("job")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def command(invocation: Invocation, job: str, reason: str) -> int:
    """Approve a job of another person; `waitreg dlq redrive --resume JOB --send` runs it.

    A redrive of more than redrive.approve_above dead letters awaits this. Which dead letters it means was fixed when it
    was asked for.
    """
    settings, asker = invocation.settings(), asker_of_command()
    asked, progress = open_job(settings, job)
    require_awaiting(asked, progress.state, asker.by)
    approve(settings, job, asker, reason)
    print(f"job {job} of {asked.by} is approved; to run it: waitreg dlq redrive --resume {job} --send")
    return 0
