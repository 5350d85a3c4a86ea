"""`waitreg dlq restore`."""

from __future__ import annotations

import click

from wait_registry.records.operation import Kind
from waitreg.command import Command, Invocation
from waitreg.dlq.job_run import begin_new, job_options
from waitreg.redrive.request import Options


@click.command(
    "restore",
    cls=Command,
    examples=("waitreg dlq restore group=payments state=archived --send --reason 'still wanted'",),
)
@job_options
@click.pass_obj
def command(invocation: Invocation, /, which: tuple[str, ...], reason: str, limit: int | None, **how: bool) -> int:
    """Mark archived dead letters as open again."""
    return begin_new(invocation.settings(), Kind.RESTORE, which, Options(reason, limit=limit), **how)
