"""Sweeps one after another in a thread, as a sweeper's process does, without Spark."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from sweeper.instruments import Instruments
from sweeper.sweeper import Sweeper
from tests.faults.sweeper_without_spark import sweep_in_process
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

PAUSE_S = 0.1


class Sweeping:
    """A sweeper at work; ``error`` is what ended it."""

    def __init__(self, settings: Settings) -> None:
        self._sweeper = Sweeper(settings, sweep_in_process, Instruments(MetricsRegistry()), "this-host")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(120)
        self._sweeper.close()

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                self._sweeper.run_once()
        except BaseException as error:  # noqa: BLE001 - for the test to look at
            self.error = error
