"""Relations between routes, topics and handlers: which records have none, and which routes no record takes."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, error, warning
from wait_registry.settings.kafka_relations import pair_problems
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.routes import RouteMatch


def route_problems(processor: ProcessorSettings) -> Iterator[Diagnosis]:
    """Yield what is wrong with ``processor.routes``, and whether records have no handler."""
    for number, route in enumerate(processor.routes):
        name, match = f"processor.routes[{number}]", route.match
        if not route.handler:
            yield error(f"{name} has no handler: name one, or remove the route")
        if match.topic is not None and match.topic not in processor.topics:
            yield error(f"{name}.match.topic is {match.topic!r}, which isn't in processor.topics: correct one of them")
        yield from pair_problems(f"{name}.match", "a match by a header", header=match.header, value=match.value)
        earlier = (first for first, other in enumerate(processor.routes[:number]) if other.match.covers(match))
        if (first := next(earlier, None)) is not None:
            yield error(
                f"no record takes {name}, because processor.routes[{first}] matches all of its records and comes "
                "first: move it in front of that one, or remove it"
            )
    yield from _rest_problems(processor)


def _rest_problems(processor: ProcessorSettings) -> Iterator[Diagnosis]:
    rest = [topic for topic in processor.topics if not _is_covered(processor, topic)]
    if processor.routes and processor.handler and processor.topics and not rest:
        yield warning("processor.handler is never called, because each record takes one of processor.routes: remove it")
    elif not processor.handler and not processor.routes:
        yield error("processor.handler isn't set; the processor needs it")
    elif not processor.handler and rest:
        yield error(
            f"processor.handler isn't set, but records of {', '.join(rest)} may take none of processor.routes: set it, "
            "or add a last route without a match"
        )


def _is_covered(processor: ProcessorSettings, topic: str) -> bool:
    return any(route.match.covers(RouteMatch(topic=topic)) for route in processor.routes)
