"""Sweepers without Spark, in a thread (`Sweeping`) or in a process that starts within a second (`start_sweeping`).

`python -m tests.faults.sweeping FILE`: the file holds the settings, pickled. Schedule, search for due rows and export
are the product's; it sweeps until it is ended, or until a sweep raises.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from sweeper.schedule import Schedule
from tests.integration.sweeper.scenario import sweeper_of
from tests.support.processes import Service
from tests.support.running_thread import RunningThread
from tests.support.shared_services import start_module
from wait_registry.settings.root import Settings

PAUSE_S = 0.1


class Sweeping(RunningThread):
    """A sweeper at work in a thread; ``error`` is what ended it."""

    def __init__(self, settings: Settings) -> None:
        self._sweeper = sweeper_of(settings)
        self._stop = threading.Event()
        super().__init__(self._sweep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.thread.join(120)
        self._sweeper.close()

    def _sweep(self) -> None:
        while not self._stop.wait(PAUSE_S):
            self._sweeper.run_once()


def start_sweeping(settings: Settings, directory: Path, environment: Mapping[str, str] | None = None) -> Service:
    """Start a sweeper process; it has no telemetry port, and its log is in the directory.

    Args:
        settings: of the sweeper.
        directory: for log and settings, made if need be.
        environment: further variables.
    """
    directory.mkdir(exist_ok=True)
    log = directory / "sweeper.log"
    return Service("sweeper", start_module("tests.faults.sweeping", settings, log, environment), log, 0)


def main(file: str) -> None:
    """Sweep until the process is ended."""
    logging.basicConfig(level=logging.INFO)
    settings: Settings = pickle.loads(Path(file).read_bytes())
    sweeper = sweeper_of(settings, instance=f"sweeper {os.getpid()}")

    def sweep() -> None:
        sweeper.run_once()

    Schedule(sweep, settings.sweeper.interval_s).run(0)


if __name__ == "__main__":
    main(sys.argv[1])
