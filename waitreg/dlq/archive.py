"""`waitreg dlq archive`."""

from __future__ import annotations

import click

from wait_registry.records.operation import Kind
from waitreg.command import Command, Invocation
from waitreg.dlq.job_run import begin_new, job_options
from waitreg.redrive.request import Options


@click.command(
    "archive",
    cls=Command,
    examples=("waitreg dlq archive group=payments error=ValueError --reason 'test orders' --send",),
)
@job_options
@click.pass_obj
def command(invocation: Invocation, /, which: tuple[str, ...], reason: str, limit: int | None, **how: bool) -> int:
    """Mark dead letters as no longer wanted. Nothing is deleted; `waitreg dlq restore` takes it back."""
    return begin_new(invocation.settings(), Kind.ARCHIVE, which, Options(reason, limit=limit), **how)
