"""A sink in a thread of the test's process, on the run's Spark session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sink.service import SinkService


class RunningSink:
    """A `SinkService` in a thread; ``error`` is what `run` raised."""

    def __init__(self, service: SinkService) -> None:
        self.service = service
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether `run` returned or raised."""
        return not self._thread.is_alive()

    def wait_ready(self, deadline_s: float = 90.0) -> RunningSink:
        """Wait until it says that it is ready."""

        def ready() -> bool:
            assert not self.ended, f"the sink ended: {self.error!r}"
            return self.service.telemetry.ready().ok

        wait_until(ready, deadline_s, "readiness of the sink")
        return self

    def wait_ended(self, deadline_s: float = 90.0) -> BaseException | None:
        """Wait until it has ended and return what it raised."""
        wait_until(lambda: self.ended, deadline_s, "the end of the sink")
        return self.error

    def stop(self) -> None:
        """Stop it and wait."""
        self.service.request_stop()
        self._thread.join(90)
        assert self.ended

    def _run(self) -> None:
        try:
            self.service.run()
        except BaseException as error:  # noqa: BLE001 - kept for the test to look at
            self.error = error


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
