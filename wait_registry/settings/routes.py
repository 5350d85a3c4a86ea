"""Routes: which handler is called for a record, by its topic or by a header."""

from __future__ import annotations

from pydantic import Field

from wait_registry.settings import Section


class RouteMatch(Section):
    """What a record must have to take a route; without any of these, every record takes it."""

    topic: str | None = Field(None, description="the topic of its first delivery")
    header: str | None = Field(None, description="name of a header; the last one of that name counts")
    value: str | None = Field(None, description="value of that header")

    def covers(self, other: RouteMatch) -> bool:
        """Return whether every record that matches ``other`` matches this too."""
        topic = self.topic is None or self.topic == other.topic
        return topic and (self.header is None or (self.header, self.value) == (other.header, other.value))


class Route(Section):
    """One route of ``processor.routes``."""

    match: RouteMatch = Field(RouteMatch(), description="which records take it")
    handler: str = Field("", description="as ``processor.handler``")
    max_in_flight: int | None = Field(None, ge=1, le=100_000, description="calls of this route at once, at most")
