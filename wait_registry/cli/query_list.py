"""All incident queries as lines for people, by kind: name, question, parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wait_registry.cli.query_file import KINDS, QueryFile


def query_lines(queries: Iterable[QueryFile]) -> Iterator[str]:
    """Yield the lines that name these queries, those of one kind below its heading."""
    queries = list(queries)
    width = max((len(query.name) for query in queries), default=0)
    for kind in KINDS:
        yield f"{kind}:"
        for query in queries:
            if query.kind == kind:
                yield f"  {query.name:<{width}}  {query.question}"
                if query.parameters:
                    yield f"  {'':<{width}}    {' '.join(_shown(query, name) for name in query.parameters)}"


def _shown(query: QueryFile, name: str) -> str:
    """Show one parameter as it is typed: in brackets, with its default, when it may be left out."""
    if name not in query.defaults:
        return f"{name}=..."
    return f"[{name}={query.defaults[name] or '...'}]"
