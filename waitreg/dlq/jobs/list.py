"""`waitreg dlq jobs list`."""

from __future__ import annotations

import click

from waitreg.command import Command, Invocation
from waitreg.read_tables import read_tables
from waitreg.redrive.job_listing import jobs
from waitreg.result_rows import render_rows


@click.command("list", cls=Command, examples=("waitreg dlq jobs list",))
@click.option("--rows", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Jobs at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per job.")
@click.pass_obj
def command(invocation: Invocation, rows: int, as_json: bool) -> int:
    """List the newest redrives, archivings and restorings: who, when, which dead letters, how many."""
    with read_tables(invocation.settings(), invocation.path, "the list of jobs") as connection:
        found = jobs(connection, rows)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    return 0
