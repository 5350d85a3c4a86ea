"""`waitreg dlq jobs rate`."""

from __future__ import annotations

import click

from waitreg.command import Command, Invocation
from waitreg.redrive.approval import require_begun
from waitreg.redrive.operator_events import change_rate
from waitreg.redrive.request import asker_of_command, open_job, require_rate


@click.command("rate", cls=Command, examples=("waitreg dlq jobs rate 3f2a9c4e7b10 50",))
@click.argument("job")
@click.argument("rate", type=float)
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def command(invocation: Invocation, job: str, rate: float, reason: str) -> int:
    """Have a job send RATE records per second from its next chunk on, at most redrive.max_rate.

    The job keeps this rate when it is resumed.
    """
    settings = invocation.settings()
    require_rate(settings, rate)
    asked, progress = open_job(settings, job)
    require_begun(asked, progress.state)
    change_rate(settings, job, rate, asker_of_command(), reason)
    print(f"job {job} will send {rate:g} records per second from its next chunk on")
    return 0
