"""`waitreg dlq jobs`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import click

from wait_registry.dead_letters.dead_letter import Reader, find
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.dead_letters.outcome_reader import outcome_rows
from wait_registry.records.operation import Requested, State
from waitreg.command import Group, Invocation
from waitreg.read_tables import read_tables
from waitreg.redrive import job_listing
from waitreg.redrive.approval import require_awaiting, require_begun, to_send
from waitreg.redrive.edit import what_changes
from waitreg.redrive.job_decision import DONE
from waitreg.redrive.operator_events import approve, change, change_rate
from waitreg.redrive.request import asker_of_command, open_job, require_rate
from waitreg.result_rows import render_rows

_EXAMPLES: Final = (
    "waitreg dlq jobs list",
    "waitreg dlq jobs show 3f2a9c4e7b10",
    "waitreg dlq jobs pause 3f2a9c4e7b10",
)
_REASON: Final = click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")


@click.group("jobs", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """List jobs, and approve, slow down, pause or cancel one."""


@command.command("list", examples=("waitreg dlq jobs list",))
@click.option("--rows", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Jobs at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per job.")
@click.pass_obj
def _list(invocation: Invocation, rows: int, as_json: bool) -> int:
    """List the newest jobs: who, when, which dead letters, how many.

    A job is a redrive, an archiving or a restoring.
    """
    with read_tables(invocation.settings(), invocation.path, "the list of jobs") as connection:
        found = job_listing.jobs(connection, rows)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    return 0


@command.command("show", examples=("waitreg dlq jobs show 3f2a9c4e7b10",))
@click.argument("job")
@click.pass_obj
def _show(invocation: Invocation, job: str) -> int:
    """Show a job, and what became of the records that it redrove."""
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the job") as connection:
        progress = job_listing.require_job(connection, job)
        listed, history = job_listing.jobs(connection, 1, job), job_listing.history(connection, job)
        for found in (listed, history, outcome_rows(settings, connection, job)):
            for line in render_rows(found.columns, found.rows):
                print(line)
        if progress.state is State.AWAITING:
            for line in _what_is_approved(connection, progress.requested):
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


@command.command("approve", examples=("waitreg dlq jobs approve 3f2a9c4e7b10 --reason 'looked at 20'",))
@click.argument("job")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def _approve(invocation: Invocation, job: str, reason: str) -> int:
    """Approve a job of another person.

    Then `waitreg dlq redrive --resume JOB --send` runs it. A redrive of more than redrive.approve_above dead letters
    awaits this. Which dead letters it means was fixed when it was asked for.
    """
    settings, asker = invocation.settings(), asker_of_command()
    found = open_job(settings, job)
    require_awaiting(found, asker.by)
    approve(settings, job, asker, reason)
    print(f"job {job} of {found.requested.by} is approved; to run it: waitreg dlq redrive --resume {job} --send")
    return 0


@command.command("pause", examples=("waitreg dlq jobs pause 3f2a9c4e7b10",))
@click.argument("job")
@_REASON
@click.pass_obj
def _pause(invocation: Invocation, job: str, reason: str) -> int:
    """Pause a job before its next chunk.

    `waitreg dlq redrive --resume JOB --send` continues it.
    """
    return _ask_for(invocation, job, State.PAUSED, reason)


@command.command("cancel", examples=("waitreg dlq jobs cancel 3f2a9c4e7b10",))
@click.argument("job")
@_REASON
@click.pass_obj
def _cancel(invocation: Invocation, job: str, reason: str) -> int:
    """End a job before its next chunk, for good."""
    return _ask_for(invocation, job, State.CANCELLED, reason)


def _ask_for(invocation: Invocation, job: str, state: State, reason: str) -> int:
    """Ask that a job be in another state, and say when it will be."""
    settings = invocation.settings()
    open_job(settings, job)
    change(settings, job, state, asker_of_command(), reason)
    print(f"job {job} will be {state.value} before its next chunk")
    return 0


@command.command("rate", examples=("waitreg dlq jobs rate 3f2a9c4e7b10 50",))
@click.argument("job")
@click.argument("rate", type=float)
@_REASON
@click.pass_obj
def _rate(invocation: Invocation, job: str, rate: float, reason: str) -> int:
    """Change how many records per second a job sends.

    RATE is at most redrive.max_rate, and holds from the next chunk on. The job keeps it when it is resumed.
    """
    settings = invocation.settings()
    require_rate(settings, rate)
    require_begun(open_job(settings, job))
    change_rate(settings, job, rate, asker_of_command(), reason)
    print(f"job {job} will send {rate:g} records per second from its next chunk on")
    return 0
