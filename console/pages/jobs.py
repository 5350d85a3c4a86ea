"""Jobs: who redrove, archived or restored which dead letters, and what became of the redriven records."""

from __future__ import annotations

from typing import Final

from console.page import Asked, NotThere, Page
from console.tables import Tables
from redrive.jobs import jobs as newest
from redrive.jobs import require_job
from wait_registry.errors import ConfigurationError

ROWS: Final = 100


def jobs(asked: Asked, tables: Tables) -> Page:
    """List the newest jobs."""
    return Page("jobs.html", {"title": "Jobs", "found": tables.without_contents(newest(tables, ROWS))})


def job(asked: Asked, tables: Tables) -> Page:
    """Show one job, and what became of its records."""
    name = asked.path["job"]
    try:
        require_job(tables, name)
    except ConfigurationError as error:
        raise NotThere(str(error)) from None
    found = tables.without_contents(newest(tables, 1, name))
    (row,) = found.rows
    facts = dict(zip(found.columns, row, strict=True))
    outcomes = tables.outcomes(tables, name)
    return Page("job.html", {"title": f"Job {name}", "facts": facts, "outcomes": outcomes})
