"""`waitreg dlq jobs`."""

from __future__ import annotations

from typing import Final

import click

from waitreg.command import Entry, Group

_SUMMARIES: Final = {
    "list": "List the newest redrives, archivings and restorings: who, when, which dead letters, how many.",
    "show": "Show a job, and what became of the records that it redrove.",
    "approve": "Approve a job of another person; `waitreg dlq redrive --resume JOB --send` runs it.",
    "pause": "Pause a job before its next chunk; `waitreg dlq redrive --resume JOB --send` continues it.",
    "cancel": "End a job before its next chunk, for good.",
    "rate": "Have a job send RATE records per second from its next chunk on, at most redrive.max_rate.",
}
_ENTRIES: Final = {"Commands": [Entry(name, summary, "query") for name, summary in _SUMMARIES.items()]}
_EXAMPLES: Final = (
    "waitreg dlq jobs list",
    "waitreg dlq jobs show 3f2a9c4e7b10",
    "waitreg dlq jobs pause 3f2a9c4e7b10",
)


@click.group("jobs", cls=Group, package="waitreg.dlq.jobs", entries=_ENTRIES, examples=_EXAMPLES)
def command() -> None:
    """List jobs, and approve, slow down, pause or cancel one."""
