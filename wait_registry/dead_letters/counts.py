"""How many dead letters there are of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wait_registry.dead_letters.dead_letter import Reader
from wait_registry.dead_letters.filter import FIELDS, Filter
from wait_registry.dead_letters.listing import Rows, ask
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.queries import Queries

_QUERIES: Final = Queries("dead_letters")
# Numbers and quoted values in messages differ from record to record, also where the message is cut.
_MESSAGE: Final = (
    r"""left(regexp_replace(left(error_message, 2000), '(?<!\w)(''[^'']*(''|$)|"[^"]*("|$))(?!\w)|[0-9]+', '#', 'g'),"""
    " 200)"
)
GROUPINGS: Final = {
    **{name: FIELDS[name].sql for name in ("state", "reason", "error", "topic", "group", "instance", "dlq")},
    "message": _MESSAGE,
    "delivery": "delivery",
    "hour": "date_trunc('hour', dead_letter_time)",
}


def parse_by(text: str) -> list[str]:
    """Read the fields to count by: names in `GROUPINGS`, with commas in between.

    Raises:
        ConfigurationError: one is no such name.
    """
    names = list(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in GROUPINGS]:
        raise ConfigurationError(f"dead letters are counted by {','.join(GROUPINGS)}, not by {unknown[0]!r}")
    return names


def groups(reader: Reader, chosen: Filter, by: Sequence[str], rows: int) -> Rows:
    """Return how many dead letters there are of each combination, the most frequent first.

    Args:
        reader: of the tables.
        chosen: which ones.
        by: names in `GROUPINGS`.
        rows: how many combinations at most.
    """
    return ask(reader, *groups_query(chosen, by, rows))


def groups_query(chosen: Filter, by: Sequence[str], rows: int) -> tuple[str, list[Any]]:
    """Return the query of `groups` and its parameters."""
    columns = ", ".join(f'{GROUPINGS[name]} as "{name}"' for name in by)
    numbers = ", ".join(str(number) for number in range(1, len(by) + 1))
    text, parameters = chosen.within(_QUERIES["counts"])
    return text.replace("{columns}", columns).replace("{numbers}", numbers), [*parameters, rows]
