"""The start page: a card per consumer group, what is stuck, what is overdue, and why records were dead-lettered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from wait_registry.dead_letters.filter import literal
from wait_registry.postgres.query_file import load_query
from waitreg.console.actions.actions import Actions
from waitreg.console.charts import Chart, Counts, drawn
from waitreg.console.formatting import Cell, dead_letter_link, dead_letters_link, group_link, job_link
from waitreg.console.page import Asked, Page, address
from waitreg.console.pages.questions import answered
from waitreg.console.tables import Answer, Tables

QUESTIONS: Final = ("stuck_now", "overdue", "dead_letters_by_reason")
MINUTES: Final = 60
# The query counts open dead letters of a group no further.
MOST_OPEN: Final = 1_000
SERIES: Final = "dead_letters"


class Card(NamedTuple):
    """A consumer group: numbers by name, each with its list, and its dead letters of the last hour by minute."""

    group: str
    link: str
    facts: Mapping[str, Cell]
    last_hour: Cell
    chart: Chart


def now(asked: Asked[Actions | None], tables: Tables) -> Page:
    """Show all groups, and the answers of some questions."""
    groups = tables.ask_within(load_query("groups_now"))
    values = {
        "title": "Now",
        "groups": groups,
        "cards": list(cards(groups, asked.now)),
        "answers": answered(asked, tables, QUESTIONS),
    }
    return Page("now.html", values)


def cards(answer: Answer, now: datetime) -> Iterator[Card]:
    """Yield the cards of the query groups_now, in its order.

    Args:
        answer: of that query.
        now: when it was asked, UTC.
    """
    for values in answer.rows:
        row = dict(zip(answer.columns, values, strict=True))
        group = row["consumer_group"]
        last_hour = Cell(f"{row['last_hour']:,}", _dead_letters(group, since="1h"))
        yield Card(group, group_link(group), dict(_facts(row)), last_hour, _chart(row["by_minute"], now))


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    group, opened = row["consumer_group"], row["open_dead_letters"]
    stuck = address("/questions/stuck_now", ("group", group))
    yield "waiting", Cell(f"{row['waiting']:,}", address("/questions/stuck_now", ("minutes", "0"), ("group", group)))
    yield "stuck", Cell(f"{row['stuck']:,}", stuck, tone="warn" if row["stuck"] else "")
    yield "overdue", Cell(f"{row['overdue']:,}", "/questions/overdue", tone="bad" if row["overdue"] else "")
    more = f"{MOST_OPEN:,} or more" if opened > MOST_OPEN else f"{opened:,}"
    yield "open dead letters", Cell(more, _dead_letters(group, "state=open"), tone="warn" if opened else "")
    if row["oldest_open"]:
        yield "oldest open", Cell("", dead_letter_link(*row["oldest_open"].rsplit(":", 2)), at=row["open_since"])
    if row["job"]:
        yield "job", Cell(row["job_state"], job_link(row["job"]), tone="warn")


def _dead_letters(group: str, *conditions: str, since: str = "365d") -> str:
    return dead_letters_link([f"group={literal(group)}", *conditions], since)


def _chart(by_minute: list[int], now: datetime) -> Chart:
    """Return the bars of the last hour, the latest minute at the right."""
    step = timedelta(minutes=1)
    start = now - MINUTES * step
    counts = {(start + number * step, SERIES): count for number, count in enumerate(by_minute)}
    return drawn(Counts(counts, (SERIES,), start, now, step))
