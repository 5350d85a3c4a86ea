"""`waitreg query LIST|NAME`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from wait_registry.errors import ConfigurationError
from waitreg.commands.command import Command, Invocation

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from waitreg.commands.query_file import QueryFile

_LIST: Final = "LIST"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="LIST|NAME", help="LIST names all queries with the question each answers")
    parser.add_argument("parameters", metavar="PARAMETER=VALUE", nargs="*", help="value of one of its parameters")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_const", dest="form", const="json", help="one JSON object a row")
    form.add_argument("--csv", action="store_const", dest="form", const="csv", help="comma-separated values")


def _run(invocation: Invocation) -> int:
    from waitreg.commands.query_file import bind, load_query

    name: str = invocation.arguments.name
    if name.upper() == _LIST:
        return _list()
    query = load_query(name)
    values = bind(query, _given(invocation.arguments.parameters))
    _ask(invocation, query, values)
    return 0


def _ask(invocation: Invocation, query: QueryFile, values: dict[str, str]) -> None:
    import psycopg

    from wait_registry.postgres.connection import connect
    from wait_registry.postgres.schema import require_schema
    from waitreg.commands.result_rows import render_rows

    settings = invocation.settings()
    with connect(settings.postgres, application_name="waitreg query") as connection:
        require_schema(read_only(connection))
        try:
            # The text comes from our own files, never from input; values travel beside it.
            cursor = connection.execute(query.sql.encode(), values)
        except psycopg.DataError as error:
            raise ConfigurationError(f"query {query.name!r} can't use these values: {error}") from error
        columns = [column.name for column in cursor.description or ()]
        for line in render_rows(columns, cursor, invocation.arguments.form or "table"):
            print(line)


def read_only(connection: psycopg.Connection[TupleRow]) -> psycopg.Connection[TupleRow]:
    """Return the connection, made unable to change anything."""
    connection.read_only = True
    return connection


def _list() -> int:
    from waitreg.commands.query_file import load_query, query_names

    names = query_names()
    width = max((len(name) for name in names), default=0)
    for query in map(load_query, names):
        parameters = "".join(
            f" [{name}={query.defaults[name]}]" if name in query.defaults else f" {name}=..."
            for name in query.parameters
        )
        print(f"{query.name:<{width}}  {query.question}{parameters}")
    return 0


def _given(parameters: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in parameters:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigurationError(f"{text!r} is no PARAMETER=VALUE")
        given[name] = value
    return given


COMMAND: Final = Command(
    name="query",
    group="looking and mending",
    summary="ask the registry: what is stuck, what was dead-lettered and why",
    description="""\
Runs one of the incident queries of sql/queries, read-only. Each is plain SQL that psql runs too, with a comment that
says which question it answers and what to do then.""",
    examples=(
        "waitreg query LIST",
        "waitreg query stuck_now",
        "waitreg query dead_letters_by_reason hours=6 --json",
    ),
    run=_run,
    configure=_configure,
)
