"""An incident query: a file in sql/queries that psql runs as it stands, read for `waitreg query`.

The file begins with a comment: the question it answers, then what to do, and last its kind, one of `KINDS`. Parameters
are psql's own quoted variables (``:'minutes'``); a line ``\\if :{?minutes} \\else \\set minutes 10 \\endif`` gives one
a default, in psql and here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Final

from wait_registry.errors import ConfigurationError

_PARAMETER = re.compile(r"(?<!:):'([a-z_]+)'")
_NUMBER = re.compile(r"cast\((?:nullif\()?:'([a-z_]+)'(?:, ''\))? as (int|bigint)\)")
_MOST: Final = {"int": 2**31 - 1, "bigint": 2**63 - 1}
_DEFAULT = re.compile(r"^\\if :\{\?(?P<name>[a-z_]+)\} \\else \\set (?P=name) (?P<value>.*?) \\endif$", re.MULTILINE)
_SUFFIX = ".sql"

# In the order in which an on-call engineer asks.
KINDS: Final = ("waiting now", "one instance, one record", "dead letters", "the system")


@dataclass(frozen=True, slots=True)
class QueryFile:
    """One query: its name, what it answers, what to do then, its kind (of `KINDS`), its parameters and its SQL.

    ``numbers`` has the largest value of each parameter that is a whole number.
    """

    name: str
    question: str
    advice: str
    kind: str
    defaults: Mapping[str, str]
    parameters: tuple[str, ...]
    numbers: Mapping[str, int]
    sql: str


def query_names() -> list[str]:
    """Return the names of all queries, sorted."""
    folder = files("wait_registry_sql") / "queries"
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in folder.iterdir() if entry.name.endswith(_SUFFIX))


@cache
def load_query(name: str) -> QueryFile:
    """Read the query of this name; raises ConfigurationError with the nearest known name when there is none."""
    known = query_names()
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigurationError(f"there is no query {name!r}; {hint}`waitreg query LIST` names them all")
    return parse_query(name, (files("wait_registry_sql") / "queries" / f"{name}{_SUFFIX}").read_text("utf-8"))


def parse_query(name: str, text: str) -> QueryFile:
    """Take a query file apart; ``sql`` of the result has psycopg's placeholders."""
    lines = text.splitlines()
    comment = list(takewhile(lambda line: line.startswith("--"), lines))
    question, *advice, kind = (line.removeprefix("--").strip() for line in comment)
    sql = "\n".join(line for line in lines[len(comment) :] if not line.startswith("\\")).strip()
    return QueryFile(
        name=name,
        question=question,
        advice="\n".join(advice),
        kind=kind.removeprefix("Kind: "),
        defaults={match["name"]: match["value"].strip("'") for match in _DEFAULT.finditer(text)},
        parameters=tuple(dict.fromkeys(_PARAMETER.findall(sql))),
        numbers={name: _MOST[kind] for name, kind in _NUMBER.findall(sql)},
        sql=_PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")),
    )


def bind(query: QueryFile, given: Mapping[str, str]) -> dict[str, str]:
    """Return a value for every parameter of the query: the given one, else its default.

    Raises ConfigurationError for a parameter that is unknown or has no value, and for a value that can't be read.
    """
    for name in given.keys() - query.parameters:
        known = ", ".join(query.parameters) or "none"
        raise ConfigurationError(f"query {query.name!r} has no parameter {name!r}; it has: {known}")
    values = {**query.defaults, **given}
    missing = [name for name in query.parameters if name not in values]
    if missing:
        example = " ".join(f"{name}=..." for name in missing)
        raise ConfigurationError(
            f"query {query.name!r} needs {', '.join(missing)}: waitreg query {query.name} {example}"
        )
    for name, value in given.items():
        _require_readable(query, name, value)
    return {name: values[name] for name in query.parameters}


def _require_readable(query: QueryFile, name: str, value: str) -> None:
    most = query.numbers.get(name)
    if most is not None and value != query.defaults.get(name):
        if re.fullmatch(" *[0-9]+ *", value) is None:
            raise ConfigurationError(f"{name}: {value!r} isn't a whole number, from 0 on")
        if len(value.strip()) > len(str(most)) or int(value) > most:
            raise ConfigurationError(f"{name}: {value!r} is too large: the most is {most}")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ConfigurationError(f"{name}: {value!r} isn't text without NUL, in UTF-8")
