"""Sinks in threads of the test's process, on the run's Spark session, with their topics and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, wait_record
from tests.support.database import Database
from tests.support.running_thread import RunningThread
from tests.support.topics import Topics
from tests.support.waiting import PATIENCE_S, wait_until
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sink.service import SinkService


class RunningSink(RunningThread):
    """A `SinkService` in a thread."""

    def __init__(self, service: SinkService) -> None:
        self.service = service
        super().__init__(service.run)

    def wait_ready(self, deadline_s: float = 90.0) -> RunningSink:
        """Wait until it says that it is ready."""

        def ready() -> bool:
            assert not self.ended, f"the sink ended: {self.error!r}"
            return self.service.telemetry.ready().ok

        wait_until(ready, deadline_s, "readiness of the sink")
        return self

    def stop(self) -> None:
        """Stop it and wait."""
        self.service.request_stop()
        self.wait_ended()


StartSink = Callable[..., RunningSink]


@pytest.fixture
def start_sink(spark: SparkSession) -> Iterator[StartSink]:
    """Start sinks; all are stopped when the test ends."""
    from sink.service import SinkService

    running: list[RunningSink] = []

    def start(settings: Settings, *, once: bool = False) -> RunningSink:
        running.append(RunningSink(SinkService(settings, spark, once=once)))
        return running[-1]

    yield start
    for sink in running:
        sink.stop()


@dataclass
class SinkScenario:
    """A wait topic, the tables, and the sinks between them."""

    settings: Settings
    topics: Topics
    database: Database
    start_sink: StartSink

    def __post_init__(self) -> None:
        self.log = WaitTopic(self.topics, self.settings.wait.topic)

    def start(self) -> RunningSink:
        """Start a sink."""
        return self.start_sink(self.settings)

    def drain(self) -> None:
        """Run a sink until all that is in the topics is in Postgres."""
        assert self.start_sink(self.settings, once=True).wait_ended() is None

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.database.rows(self.settings, query, *parameters)

    def execute(self, statement: str, *parameters: Any) -> None:
        """Change the tables by hand."""
        self.database.execute(self.settings, statement, parameters or None)

    def is_exact(self) -> bool:
        """Return whether the table shows exactly what the log leaves open."""
        return rows_of(self.database, self.settings) == self.log.rows

    def wait_exact(self, when: str = "") -> None:
        """Wait until it does."""
        wait_until(self.is_exact, 2 * PATIENCE_S, f"the exact rows {when}")

    def change(self) -> None:
        """Resolve half of what is open, and register some more."""
        ended = list(self.log.rows)[::2]
        self.log.write(*[tombstone(wait_id, 0) for wait_id in ended], *[wait_record(new_id(), 0) for _ in range(6)])

    def wait_applied_once(self, when: str) -> None:
        """Wait until the table is exact; no tombstone may have been applied twice."""
        self.wait_exact(when)
        assert self.rows("select * from late_outcome") == [], when

    def change_and_wait(self, when: str) -> None:
        """Write and wait."""
        self.change()
        self.wait_applied_once(when)


SinkScenarioFactory = Callable[..., SinkScenario]


@pytest.fixture
def sink_scenario(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> SinkScenarioFactory:
    """Make scenarios with further settings."""

    def make(overrides: dict[str, Any] | None = None) -> SinkScenario:
        quick = {"sink.poll_interval_s": 0.1, "sink.restart_backoff_max_s": 0.2}
        return SinkScenario(prepared({**quick, **(overrides or {})}), topics, database, start_sink)

    return make
