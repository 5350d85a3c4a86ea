"""Pages of dead letters, and how many there are of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from wait_registry.dead_letters.dead_letter import Reader, parse_place
from wait_registry.dead_letters.filter import Filter
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.queries import Queries
from wait_registry.records.operation import Place

_QUERIES: Final = Queries("dead_letters")
# The last columns are for the cursor, and aren't shown.
_PLACE_COLUMNS: Final = 3
_AT: Final = 1
_AFTER: Final = '(dead_letter_time, topic, partition, "offset") < (%s, %s, %s, %s)'


class Cursor(NamedTuple):
    """The last dead letter of a page; the next page begins behind it."""

    time: datetime
    place: Place

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.time.astimezone(UTC).isoformat()},{self.place}"


class Rows(NamedTuple):
    """Rows of a query with the names of their columns, and the cursor of the next page if there is one."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    following: Cursor | None = None


def parse_cursor(text: str) -> Cursor:
    """Read the cursor that a page ended with.

    Raises:
        ConfigurationError: it is something else.
    """
    time, _, place = text.partition(",")
    try:
        return Cursor(datetime.fromisoformat(time), parse_place(place))
    except ValueError:
        raise ConfigurationError(f"{text!r} is no cursor: take the one that the page before ended with") from None


def page_query(chosen: Filter, rows: int, after: Cursor | None = None) -> tuple[str, list[Any]]:
    """Return the query of `page` and its parameters: one row more than is shown says whether there are more."""
    query, place = _QUERIES["page"], () if after is None else (after.time, *after.place)
    text, parameters = chosen.within(query if after is None else query.replace("{where}", f"{{where}} and {_AFTER}"))
    return text, [*parameters, *place, rows + 1]


def page(reader: Reader, chosen: Filter, rows: int, after: Cursor | None = None) -> Rows:
    """Return the newest dead letters, or those that follow a cursor.

    Args:
        reader: of the tables.
        chosen: which ones; give it a time, or all rows are looked through.
        rows: how many at most.
        after: the cursor of the page before.
    """
    found = ask(reader, *page_query(chosen, rows, after))
    columns, places = found.columns[:-_PLACE_COLUMNS], [Place(*row[-_PLACE_COLUMNS:]) for row in found.rows[:rows]]
    shown = [row[:-_PLACE_COLUMNS] for row in found.rows[:rows]]
    more = len(found.rows) > rows
    return Rows(columns, shown, Cursor(shown[-1][_AT], places[-1]) if more else None)


def groups_and_topics(reader: Reader, chosen: Filter) -> list[tuple[str | None, str | None]]:
    """Return the pairs of consumer group and input topic of the dead letters that a filter means."""
    return [(group, topic) for group, topic in ask(reader, *chosen.within(_QUERIES["groups_and_topics"])).rows]


def ask(reader: Reader, text: str, parameters: Sequence[object] | Mapping[str, object]) -> Rows:
    """Return all rows of a query.

    Args:
        reader: of the tables.
        text: from the files of SQL and from `FIELDS`, never from input.
        parameters: values, which are sent separately.
    """
    cursor = reader.execute(text.encode(), parameters)
    return Rows([column.name for column in cursor.description or ()], cursor.fetchall())
