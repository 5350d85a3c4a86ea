"""Sink connectors from this project's files, on topics and tables of one test's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.integration.sink.wait_topic import WaitTopic, rows_of
from tests.support.connect_connectors import Connectors
from tests.support.database import Database
from tests.support.kafka_io import ReadRecord
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

# The group gives up the consumer of a killed worker soon.
QUICK = {"consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "1000"}
# With these a sink fails soon when the database refuses something.
IMPATIENT = {"flush.max.retries": "1", "flush.retry.delay.ms": "200"}


class Sinking:
    """The sinks of one schema; `log` is their wait topic with the rows that its records make."""

    def __init__(self, connectors: Connectors, topics: Topics, database: Database, settings: Settings) -> None:
        self.connectors, self.topics, self.database, self.settings = connectors, topics, database, settings
        self.log = WaitTopic(topics, settings.wait.topic)
        self.unreadable = f"{settings.wait.topic}.unreadable"
        topics.delete_at_end(self.unreadable)

    def start(self, connector: str = "wait.sink", changes: Mapping[str, str] | None = None) -> str:
        """Start a connector and return its name."""
        return self.connectors.start(f"{connector}.debezium.json", self.settings, {**QUICK, **(changes or {})})

    def start_impatient(self, changes: Mapping[str, str] | None = None) -> str:
        """Start the sink of the wait topic, which fails soon when the database refuses something."""
        return self.start(changes={**IMPATIENT, **(changes or {})})

    def rows(self) -> dict[str, tuple[int, int]]:
        """Return partition and offset of each row of `wait`, by wait ID."""
        return rows_of(self.database, self.settings)

    def wait_for_rows(self, what: str) -> None:
        """Wait until the table has exactly the rows that the log makes."""
        wait_until(lambda: self.rows() == self.log.rows, what=what)

    def refused(self) -> list[ReadRecord]:
        """Return the records that the sink wrote to its topic for unreadable records."""
        existing = self.topics.admin.list_topics(timeout=15).topics
        return self.topics.read(self.unreadable) if self.unreadable in existing else []


SinkingFactory = Callable[[Mapping[str, object]], Sinking]
