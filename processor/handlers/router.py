"""Which route a record takes (``processor.routes``)."""

from __future__ import annotations

from collections.abc import Sequence

from wait_registry.handler import Record
from wait_registry.settings.routes import RouteMatch


class Router:
    """Numbers the routes from 0; a record takes the first one that it matches.

    A record's topic and headers are those of its first delivery, so it takes the same route in each delivery.

    Args:
        matches: of the routes, in order.
    """

    def __init__(self, matches: Sequence[RouteMatch]) -> None:
        self._matches = [
            (match.topic, match.header, None if match.value is None else match.value.encode()) for match in matches
        ]

    def route_of(self, record: Record) -> int:
        """Return the number of a record's route; of one that matches none, the number of routes."""
        for number, (topic, header, value) in enumerate(self._matches):
            if topic is not None and topic != record.topic:
                continue
            if header is None or _last_value(record, header) == value:
                return number
        return len(self._matches)


def _last_value(record: Record, header: str) -> bytes | None:
    for name, value in reversed(record.headers):
        if name == header:
            return value
    return None
