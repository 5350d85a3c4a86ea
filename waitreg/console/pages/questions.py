"""Pages of ready questions: each is a file in sql/queries, whose comment says what it answers and what to do then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from wait_registry.dead_letters.dead_letter import place_in
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.dead_letters.listing import Rows, page
from wait_registry.postgres.query_file import KINDS, load_query, query_names
from waitreg.console.access.grants import ROLES
from waitreg.console.actions.actions import Actions
from waitreg.console.charts import Chart, chart_of
from waitreg.console.page import Asked, Page, View
from waitreg.console.refusals import NotAllowed, NotThere
from waitreg.console.tables import Answer, Tables
from waitreg.redrive.job_decision import MEANINGS

INSTANCES: Final = ("waiting_by_instance", "waiting_by_partition")
TIMELINE: Final = ("burst_timeline", "dead_letters_over_time")
SYSTEM: Final = ("sink_freshness", "last_sweeps", "quarantined", "growth_per_day", "sizes")


def page_of(title: str, names: Sequence[str]) -> View[Actions | None]:
    """Return a page with the answers of some questions, with their defaults."""

    def view(asked: Asked[Actions | None], tables: Tables) -> Page:
        return Page("questions.html", {"title": title, "answers": answered(asked, tables, names)})

    return view


def answered(
    asked: Asked[Actions | None], tables: Tables, names: Sequence[str]
) -> Sequence[tuple[Answer, Chart | None]]:
    """Return the answers of some questions, as far as the person may ask them, with their charts."""
    queries = filter(tables.may_ask, map(load_query, names))
    return _with_charts([tables.ask_within(query) for query in queries], asked.now)


def question(asked: Asked[Actions | None], tables: Tables) -> Page:
    """Answer one question with the values of the address; without all that it needs, show its form only."""
    name = asked.path["name"]
    if name not in query_names():
        raise NotThere(f"There is no question {name!r}. The help page lists all.")
    query, given = load_query(name), asked.values()
    missing = [parameter for parameter in query.parameters if parameter not in {**query.defaults, **given}]
    answers = [] if missing else [tables.ask(query, given)]
    values = {"title": name, "question": query, "given": given, "answers": _with_charts(answers, asked.now)}
    return Page("question.html", values)


def record(asked: Asked[Actions | None], tables: Tables) -> Page:
    """Answer what happened to one record, by place, wait ID, idempotency key or key: whichever of them was given."""
    # What is pasted often has blanks around it. A key that does end with one is given as \x and its bytes.
    given = asked.values().get("find", "").strip()
    place, dead_letters, asks = place_in(given), Rows((), ()), [("record_deliveries", {"id": given})]
    if place:
        dead_letters = tables.without_contents(page(tables, parse_filter([f"place={place}"], asked.now), 1))
        # The place of a dead letter leaves no trace as that of a record.
        names = ("record_deliveries",) if dead_letters.rows else ("record", "record_deliveries")
        asks = [(name, {key: str(value) for key, value in place._asdict().items()}) for name in names]
    try:
        tables.require_content(("key",), Filter(()))
    except NotAllowed as refused:
        no_keys = str(refused)
    else:
        no_keys = ""
        asks.append(("record_by_key", {"key": given}))
    answers = [tables.ask(load_query(name), values) for name, values in asks] if given else []
    values = {
        "title": "Record",
        "given": given,
        "no_keys": no_keys,
        "dead_letters": dead_letters,
        "answers": [answer for answer in answers if answer.rows],
        "waits": any(row[answer.columns.index("event")] == "waiting" for answer in answers for row in answer.rows),
    }
    return Page("record.html", values)


def help_page() -> Page:
    """List all questions by their kind."""
    queries = [load_query(name) for name in query_names()]
    kinds = {kind: [query for query in queries if query.kind == kind] for kind in KINDS}
    roles = {role: [right.value for right in rights] for role, rights in ROLES.items()}
    return Page("help.html", {"title": "Help", "kinds": kinds, "categories": MEANINGS, "roles": roles})


def _with_charts(answers: Sequence[Answer], now: datetime) -> list[tuple[Answer, Chart | None]]:
    return [(answer, chart_of(answer, now)) for answer in answers]
