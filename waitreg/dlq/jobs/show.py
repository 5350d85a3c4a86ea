"""`waitreg dlq jobs show`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import click

from wait_registry.dead_letters.dead_letter import Reader, find
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.dead_letters.outcome_reader import outcome_rows
from wait_registry.records.operation import Requested, State
from waitreg.command import Command, Invocation
from waitreg.read_tables import read_tables
from waitreg.redrive.approval import to_send
from waitreg.redrive.category import DONE
from waitreg.redrive.edit import what_changes
from waitreg.redrive.job_listing import history, jobs, require_job
from waitreg.result_rows import render_rows


@click.command("show", cls=Command, examples=("waitreg dlq jobs show 3f2a9c4e7b10",))
@click.argument("job")
@click.pass_obj
def command(invocation: Invocation, job: str) -> int:
    """Show a job, and what became of the records that it redrove."""
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the job") as connection:
        row = require_job(connection, job)
        for found in (jobs(connection, 1, job), history(connection, job), outcome_rows(settings, connection, job)):
            for line in render_rows(found.columns, found.rows):
                print(line)
        if row.state is State.AWAITING:
            for line in _what_is_approved(connection, row.requested):
                print(line)
    return 0


def _what_is_approved(reader: Reader, job: Requested) -> Iterator[str]:
    """Yield what a person should know of a job before they approve it."""
    counts = ", ".join(f"{name}: {count}" for name, count in sorted(job.expected.items()))
    yield f"its dry run: {counts}; at most {to_send(job)} are {DONE[job.kind].value}"
    yield f"to: {job.target}, at {job.rate:g} per second, canary: {job.canary or 'none'}"
    yield f"all the same: {', '.join(job.allowed) or 'nothing'}"
    if job.replacement is not None:
        (place,) = parse_filter(job.conditions, datetime.now(UTC)).exact_values("place")
        yield from what_changes(find(reader, place)[0].content, job.replacement)
