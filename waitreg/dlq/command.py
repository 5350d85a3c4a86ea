"""`waitreg dlq`."""

from __future__ import annotations

from typing import Final

import click

from waitreg.command import Entry, Group

_SUMMARIES: Final = {
    "list": "List dead letters, the newest first, or count them.",
    "show": "Show a dead letter: error, record, and what happened to it.",
    "diff": "Show how two records differ: key, headers and value.",
    "redrive": "Send dead letters again, to be handled by their group.",
    "edit": "Send the record of one dead letter with changes, to be handled by its group.",
    "merge": "Redrive everything that is open in dead letter topics; `waitreg dlq redrive dlq=TOPIC` has more options.",
    "archive": "Mark dead letters as no longer wanted. Nothing is deleted; `waitreg dlq restore` takes it back.",
    "restore": "Mark archived dead letters as open again.",
    "purge": "Archive the old dead letters of a topic. Kafka deletes the records by the topic's retention.",
    "audit": "List what operators did with dead letters, the newest first: one row per job and per delivery.",
    "jobs": "List jobs, and approve, slow down, pause or cancel one.",
}
_ENTRIES: Final = {"Commands": [Entry(name, summary, "query") for name, summary in _SUMMARIES.items()]}
_EXAMPLES: Final = (
    "waitreg dlq list group=payments reason=failed since=2h",
    "waitreg dlq redrive group=payments 'error=*Timeout*' since=2h",
    "waitreg dlq jobs list",
)


@click.group("dlq", cls=Group, package="waitreg.dlq", entries=_ENTRIES, examples=_EXAMPLES)
def command() -> None:
    """Find dead letters, look at them, and have them handled again."""
