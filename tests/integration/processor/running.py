"""A processor in a thread of the test process, with a handler that the test holds in its hands."""

from __future__ import annotations

import sys
import types
import uuid
from typing import Any

from processor.health.stats import Stats
from processor.service import ProcessorService
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.service.health import Health
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.metrics import Metric
from wait_registry.telemetry.tracing import Tracer


class RunningProcessor(RunningThread):
    """One service and its thread."""

    def __init__(self, settings: Settings, once: bool = False, tracer: Tracer | None = None) -> None:
        self.settings = settings
        self.service = ProcessorService(settings, once=once, tracer=tracer)
        super().__init__(self.service.run)

    def wait_joined(self, deadline_s: float = 120.0) -> RunningProcessor:
        """Wait until it is ready."""
        wait_until(lambda: self.health.ok, deadline_s, "readiness of the processor")
        return self

    def stop(self, deadline_s: float = 120.0) -> None:
        """Ask it to stop, wait for its end, and raise what ended it."""
        self.service.request_stop()
        self.join(deadline_s)

    def join(self, deadline_s: float = 120.0) -> None:
        """Wait for its end and raise what ended it."""
        if error := self.wait_ended(deadline_s):
            raise error

    @property
    def _alive(self) -> ProcessorService:
        """The service; raises the error that ended it, so that no test waits for a dead processor."""
        if self.error is not None:
            raise self.error
        return self.service

    @property
    def stats(self) -> Stats:
        """Its numbers."""
        return self._alive.stats

    @property
    def settled(self) -> dict[str, int]:
        """Acknowledged tombstones by outcome."""
        return dict(self.stats.settled)

    @property
    def done(self) -> int:
        """Acknowledged tombstones of records that are done."""
        return self.stats.settled["done"]

    @property
    def health(self) -> Health:
        """What /health/ready answers."""
        return self._alive.ready()

    def values(self, metric: Metric) -> list[float]:
        """What it shows of a metric, one value for each label."""
        assert not self.ended
        return [one.value for one in self.service.readings() if isinstance(one, Reading) and one.metric is metric]


class Processors:
    """Starts processors; all are ended when the test is over."""

    def __init__(self) -> None:
        self._running: list[RunningProcessor] = []
        self._modules: list[str] = []

    def handler(self, handler: Any) -> str:
        """Make a handler importable for the time of the test; returns its name."""
        name = f"handler_{uuid.uuid4().hex}"
        module = types.ModuleType(name)
        module.handler = handler  # type: ignore[attr-defined]
        sys.modules[name] = module
        self._modules.append(name)
        return f"{name}:handler"

    def start(self, settings: Settings, once: bool = False, tracer: Tracer | None = None) -> RunningProcessor:
        """Start a processor."""
        running = RunningProcessor(settings, once, tracer)
        self._running.append(running)
        return running

    def run_once(self, settings: Settings, deadline_s: float = 90.0, tracer: Tracer | None = None) -> RunningProcessor:
        """Work off what is in the topics now."""
        running = self.start(settings, True, tracer)
        running.join(deadline_s)
        return running

    def close(self) -> None:
        """End everything."""
        for running in self._running:
            running.service.request_stop()
        for running in self._running:
            running.thread.join(60)
        for name in self._modules:
            del sys.modules[name]
