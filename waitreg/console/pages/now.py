"""The start page: a tile per consumer group, what is stuck, what is overdue, and why records were dead-lettered."""

from __future__ import annotations

from typing import Final

from wait_registry.postgres.query_file import load_query
from waitreg.console.page import Asked, Page
from waitreg.console.pages.questions import answered
from waitreg.console.tables import Tables
from waitreg.console.tiles import tiles

QUESTIONS: Final = ("stuck_now", "overdue", "dead_letters_by_reason")


def now(asked: Asked, tables: Tables) -> Page:
    """Show all groups, and the answers of some questions."""
    groups = tables.ask_within(load_query("groups_now"))
    values = {
        "title": "Now",
        "groups": groups,
        "tiles": list(tiles(groups, asked.now)),
        "answers": answered(asked, tables, QUESTIONS),
    }
    return Page("now.html", values)
