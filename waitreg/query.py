"""`waitreg query LIST|NAME`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from wait_registry.errors import ConfigurationError
from wait_registry.postgres.query_file import KINDS, QueryFile, bind, load_query, query_names
from waitreg.command import Command, Invocation
from waitreg.result_rows import render_rows

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

_LIST: Final = "LIST"


@click.command(
    "query",
    cls=Command,
    extra="query",
    examples=(
        "waitreg query LIST",
        "waitreg query stuck_now",
        "waitreg query record_by_key key=customer-17",
        "waitreg query burst_timeline from='2 hours ago'",
        "waitreg query dead_letters_by_reason --json hours=6",
    ),
)
@click.argument("name", metavar="LIST|NAME")
@click.argument("parameters", metavar="[PARAMETER=VALUE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.pass_obj
def command(invocation: Invocation, name: str, parameters: tuple[str, ...], as_json: bool) -> int:
    """Run a ready-made incident query.

    LIST names all queries of sql/queries with the question that each answers. A query is read-only. It prints how old
    the tables are (with --json on standard error) and what to do next. A table that is wider than 120
    columns is printed with one field per line.

    Times are UTC. A parameter that is a time takes what Postgres reads as one (2026-11-21T08:00Z, now, yesterday), or
    '2 hours ago'. Each query is plain SQL that psql runs too: psql -v minutes=5 -f sql/queries/stuck_now.sql.
    """
    if name.upper() == _LIST:
        for line in list_lines(map(load_query, query_names())):
            print(line)
        return 0
    query = load_query(name)
    values = bind(query, _given(parameters))
    _ask(invocation, query, values, as_json)
    if not as_json:
        print(f"\n{query.advice}")
    return 0


def _ask(invocation: Invocation, query: QueryFile, values: Mapping[str, str], as_json: bool) -> None:
    # The extra with psycopg may be missing; then the help and the list are still shown.
    from waitreg.read_tables import age, read_tables

    settings = invocation.settings()
    with read_tables(settings, invocation.path, f"query {query.name!r}") as connection:
        as_of = age(connection, settings)
        print_rows(connection, query, values, as_json)
        # Only rows on standard output, for scripts.
        print(as_of, file=sys.stderr if as_json else sys.stdout)


def print_rows(
    connection: psycopg.Connection[TupleRow], query: QueryFile, values: Mapping[str, str], as_json: bool = False
) -> None:
    """Run a query and print its rows."""
    # The text comes from our own files, never from input; values are sent separately.
    cursor = connection.execute(query.sql.encode(), values)
    for line in render_rows([column.name for column in cursor.description or ()], cursor, as_json):
        print(line)


def list_lines(queries: Iterable[QueryFile]) -> Iterator[str]:
    """Yield lines that name queries, by kind: name, question, parameters."""
    queries = list(queries)
    width = max((len(query.name) for query in queries), default=0)
    for kind in KINDS:
        yield f"{kind}:"
        for query in queries:
            if query.kind == kind:
                yield f"  {query.name:<{width}}  {query.question}"
                if query.parameters:
                    yield f"  {'':<{width}}    {' '.join(_typed(query, name) for name in query.parameters)}"


def _typed(query: QueryFile, name: str) -> str:
    """Return a parameter as it is typed: an optional one in brackets, with its default."""
    if name not in query.defaults:
        return f"{name}=..."
    return f"[{name}={query.defaults[name] or '...'}]"


def _given(parameters: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in parameters:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigurationError(f"{text!r} is no PARAMETER=VALUE, e.g. minutes=5")
        if not value.isprintable():
            raise ConfigurationError(
                f"the value of {name} isn't printable text: give such a key as \\x and hexadecimal digits"
            )
        if name in given:
            raise ConfigurationError(f"{name} is given twice, {given[name]!r} and {value!r}: give it once")
        given[name] = value
    return given
