"""`waitreg dlq jobs`: what operators did, and the jobs that are running."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import click

from wait_registry.dead_letters.dead_letter import Reader, find
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.records.operation import Requested, State
from waitreg.command import Command, Group, Invocation
from waitreg.redrive.approval import to_send
from waitreg.redrive.category import DONE
from waitreg.redrive.edit import what_changes

_EXAMPLES = ("waitreg dlq jobs list", "waitreg dlq jobs show 3f2a9c4e7b10", "waitreg dlq jobs pause 3f2a9c4e7b10")


@click.group("jobs", cls=Group, examples=_EXAMPLES)
def jobs() -> None:
    """List jobs, and approve, slow down, pause or cancel one."""


@jobs.command("list", cls=Command, extra="query", examples=("waitreg dlq jobs list",))
@click.option("--rows", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Jobs at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per job.")
@click.pass_obj
def list_(invocation: Invocation, rows: int, as_json: bool) -> int:
    """List the newest redrives, archivings and restorings: who, when, which dead letters, how many."""
    from waitreg.read_tables import read_tables
    from waitreg.redrive.jobs import jobs as newest
    from waitreg.result_rows import render_rows

    with read_tables(invocation.settings(), invocation.path, "the list of jobs") as connection:
        found = newest(connection, rows)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    return 0


@jobs.command("show", cls=Command, extra="query", examples=("waitreg dlq jobs show 3f2a9c4e7b10",))
@click.argument("job")
@click.pass_obj
def show(invocation: Invocation, job: str) -> int:
    """Show a job, and what became of the records that it redrove."""
    from wait_registry.dead_letters.outcomes import outcome_rows
    from waitreg.read_tables import read_tables
    from waitreg.redrive.jobs import history, requested, require_job
    from waitreg.redrive.jobs import jobs as newest
    from waitreg.result_rows import render_rows

    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the job") as connection:
        state = require_job(connection, job)
        for found in (
            newest(connection, 1, job),
            history(connection, job),
            outcome_rows(settings, connection, job),
        ):
            for line in render_rows(found.columns, found.rows, as_json=False):
                print(line)
        if state == State.AWAITING:
            for line in _what_is_approved(connection, requested(connection, job)):
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


@jobs.command(
    "approve", cls=Command, extra="query", examples=("waitreg dlq jobs approve 3f2a9c4e7b10 --reason 'looked at 20'",)
)
@click.argument("job")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def approve(invocation: Invocation, job: str, reason: str) -> int:
    """Approve a job of another person; `waitreg dlq redrive --resume JOB --send` runs it.

    A redrive of more than redrive.approve_above dead letters awaits this. Which dead letters it means was fixed when it
    was asked for.
    """
    from waitreg.redrive.approval import require_awaiting
    from waitreg.redrive.job_change import approve as write
    from waitreg.redrive.request import asker_of_command, open_job

    settings, asker = invocation.settings(), asker_of_command()
    asked, progress = open_job(settings, job)
    require_awaiting(asked, progress.state, asker.by)
    write(settings, job, asker, reason)
    print(f"job {job} of {asked.by} is approved; to run it: waitreg dlq redrive --resume {job} --send")
    return 0


@jobs.command("pause", cls=Command, extra="query", examples=("waitreg dlq jobs pause 3f2a9c4e7b10",))
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def pause(invocation: Invocation, job: str, reason: str) -> int:
    """Pause a job before its next chunk; `waitreg dlq redrive --resume JOB --send` continues it."""
    return _change(invocation, job, State.PAUSED, reason)


@jobs.command("cancel", cls=Command, extra="query", examples=("waitreg dlq jobs cancel 3f2a9c4e7b10",))
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def cancel(invocation: Invocation, job: str, reason: str) -> int:
    """End a job before its next chunk, for good."""
    return _change(invocation, job, State.CANCELLED, reason)


@jobs.command("rate", cls=Command, extra="query", examples=("waitreg dlq jobs rate 3f2a9c4e7b10 50",))
@click.argument("job")
@click.argument("rate", type=float)
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later.")
@click.pass_obj
def rate_(invocation: Invocation, job: str, rate: float, reason: str) -> int:
    """Have a job send RATE records per second from its next chunk on, at most redrive.max_rate.

    The job keeps this rate when it is resumed.
    """
    from waitreg.redrive.approval import require_begun
    from waitreg.redrive.job_change import change_rate
    from waitreg.redrive.request import asker_of_command, open_job, require_rate

    settings = invocation.settings()
    require_rate(settings, rate)
    asked, progress = open_job(settings, job)
    require_begun(asked, progress.state)
    change_rate(settings, job, rate, asker_of_command(), reason)
    print(f"job {job} will send {rate:g} records per second from its next chunk on")
    return 0


@click.command(
    "audit",
    cls=Command,
    extra="query",
    examples=(
        "waitreg dlq audit --since 7d",
        "waitreg dlq audit --place orders.dlq:0:17",
        "waitreg dlq audit --by anna",
    ),
)
@click.option("--by", metavar="USER", help="Only what this user did.")
@click.option("--job", metavar="JOB", help="Only this job.")
@click.option("--place", metavar="PLACE", help="Only what was done with this dead letter, topic:partition:offset.")
@click.option("--since", default="7d", show_default=True, metavar="TIME", help="2h, 7d or an ISO 8601 time.")
@click.option("--rows", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Rows at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.pass_obj
def audit(invocation: Invocation, /, since: str, rows: int, as_json: bool, **only: str | None) -> int:
    """List what operators did with dead letters, the newest first: one row per job and per delivery."""
    from waitreg.read_tables import read_tables
    from waitreg.redrive.jobs import audit as done
    from waitreg.result_rows import render_rows

    (condition,) = parse_filter([f"since={since}"], datetime.now(UTC)).conditions
    with read_tables(invocation.settings(), invocation.path, "the audit") as connection:
        found = done(connection, condition.value, rows, deliveries=True, **only)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    return 0


def _change(invocation: Invocation, job: str, state: State, reason: str) -> int:
    from waitreg.redrive.job_change import change
    from waitreg.redrive.request import asker_of_command, open_job

    settings = invocation.settings()
    open_job(settings, job)
    change(settings, job, state, asker_of_command(), reason)
    print(f"job {job} will be {state.value} before its next chunk")
    return 0
