"""Routes: which handler is called for a record, by its topic or by a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from wait_registry.diagnosis import Diagnosis, error, warning
from wait_registry.settings import Section
from wait_registry.settings.contradictions import pair_problems


class RouteMatch(Section):
    """What a record must have to take a route; without any of these, every record takes it."""

    topic: str | None = None
    """the topic of its first delivery"""
    header: str | None = None
    """name of a header; the last one of that name counts"""
    value: str | None = None
    """value of that header"""

    def covers(self, other: RouteMatch) -> bool:
        """Return whether every record that matches ``other`` matches this too."""
        topic = self.topic is None or self.topic == other.topic
        return topic and (self.header is None or (self.header, self.value) == (other.header, other.value))


class Route(Section):
    """One route of ``processor.routes``."""

    match: RouteMatch = RouteMatch()
    """which records take it"""
    handler: str = ""
    """as ``processor.handler``"""
    max_in_flight: int | None = Field(None, ge=1, le=100_000)
    """calls of this route at once, at most"""


def route_problems(routes: Sequence[Route], topics: Sequence[str], handler: str) -> Iterator[Diagnosis]:
    """Yield what is wrong with ``processor.routes``, and whether records of ``topics`` have no handler."""
    for number, route in enumerate(routes):
        name, match = f"processor.routes[{number}]", route.match
        if not route.handler:
            yield error(f"{name} has no handler: name one, or remove the route")
        if match.topic is not None and match.topic not in topics:
            yield error(f"{name}.match.topic is {match.topic!r}, which isn't in processor.topics: correct one of them")
        yield from pair_problems(f"{name}.match", "a match by a header", header=match.header, value=match.value)
        earlier = (first for first, other in enumerate(routes[:number]) if other.match.covers(match))
        if (first := next(earlier, None)) is not None:
            yield error(
                f"no record takes {name}, because processor.routes[{first}] matches all of its records and comes "
                "first: move it in front of that one, or remove it"
            )
    yield from _rest_problems(routes, topics, handler)


def _rest_problems(routes: Sequence[Route], topics: Sequence[str], handler: str) -> Iterator[Diagnosis]:
    rest = [topic for topic in topics if not any(route.match.covers(RouteMatch(topic=topic)) for route in routes)]
    if routes and handler and topics and not rest:
        yield warning("processor.handler is never called, because each record takes one of processor.routes: remove it")
    elif not handler and not routes:
        yield error("processor.handler isn't set; the processor needs it")
    elif not handler and rest:
        yield error(
            f"processor.handler isn't set, but records of {', '.join(rest)} may take none of processor.routes: set it, "
            "or add a last route without a match"
        )
