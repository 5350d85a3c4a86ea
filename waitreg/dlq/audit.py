"""`waitreg dlq audit`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from wait_registry.dead_letters.filter import parse_filter
from waitreg.command import Command, Invocation
from waitreg.read_tables import read_tables
from waitreg.redrive.job_listing import audit
from waitreg.result_rows import render_rows


@click.command(
    "audit",
    cls=Command,
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
def command(invocation: Invocation, /, since: str, rows: int, as_json: bool, **only: str | None) -> int:
    """List what operators did with dead letters, the newest first: one row per job and per delivery."""
    (condition,) = parse_filter([f"since={since}"], datetime.now(UTC)).conditions
    with read_tables(invocation.settings(), invocation.path, "the audit") as connection:
        found = audit(connection, condition.value, rows, deliveries=True, **only)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    return 0
