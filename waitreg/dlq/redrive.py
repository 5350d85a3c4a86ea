"""`waitreg dlq redrive`."""

from __future__ import annotations

from typing import Any

import click

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind
from waitreg.command import Command, Invocation
from waitreg.dlq.job_run import COUNT, allowed, begin_new, job_options, resume_job
from waitreg.redrive.request import Options
from waitreg.redrive.target import ORIGIN, REDELIVERY


@click.command(
    "redrive",
    cls=Command,
    examples=(
        "waitreg dlq redrive orders.dlq:0:17",
        "waitreg dlq redrive group=payments 'error=*Timeout*' since=2h --rate 50 --send --reason 'service is back'",
        "waitreg dlq redrive --resume 3f2a9c4e7b10 --send",
    ),
)
@job_options
@click.option("--rate", type=click.FloatRange(0.01), metavar="N", help="Records per second; see redrive.rate.")
@click.option(
    "--to",
    type=click.Choice([REDELIVERY, ORIGIN]),
    default=REDELIVERY,
    show_default=True,
    help="The topic that only the group reads, or the input topic, which other groups may read as well.",
)
@click.option("--may-be-done", is_flag=True, help="Also expired ones, whose work may have been done.")
@click.option("--finished-late", is_flag=True, help="Also those whose work was done after the deadline.")
@click.option("--again", is_flag=True, help="Also those that were redriven before.")
@click.option("--over-max", is_flag=True, help="Also those redriven redrive.max_redrives times.")
@click.option("--without-members", is_flag=True, help="Also if the group has no member now.")
@click.option(
    "--canary",
    type=COUNT,
    metavar="N",
    help="Send N, and the others only if hardly any of these come back.",
)
@click.option("--resume", metavar="JOB", help="Continue a job that was stopped or paused.")
@click.pass_obj
def command(invocation: Invocation, /, which: tuple[str, ...], to: str, resume: str | None, **given: Any) -> int:
    """Send dead letters again, to be handled by their group.

    Without --send, this shows what would be done with each dead letter, and nothing is sent. Each delivery is sent
    once, whatever fails meanwhile and whichever other operators redrive it: records and marks are one transaction. All
    dead letters must be of one consumer group. Ctrl-C pauses the job. More than redrive.approve_above dead letters
    await the approval of another person. Ends with 1 if some were not redriven.
    """
    settings = invocation.settings()
    if resume is not None:
        if which:
            raise ConfigurationError("a job that is resumed has its own conditions: give none")
        if given["as_json"]:
            raise ConfigurationError("--json is for a new job; `waitreg dlq jobs list --json` shows the resumed one")
        return resume_job(settings, resume, send=given["send"])
    options = Options(given["reason"], to, given["rate"], given["limit"], allowed(given), given["canary"])
    return begin_new(settings, Kind.REDRIVE, which, options, send=given["send"], as_json=given["as_json"])
