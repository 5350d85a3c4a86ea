"""The calls of the handlers in processes, as these have written them down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.integration.processor.scenario import ProcessorScenario
from tests.support.processes import Service, Services
from tests.support.waiting import wait_until

HANDLERS = "tests.integration.processor.deadly_handlers"
Place = tuple[int, int]
"""Partition and offset of a record of the one input topic."""


class Calls:
    """The file that the handlers of `deadly_handlers` write, and the processes that they run in."""

    def __init__(self, services: Services, path: Path) -> None:
        self._services = services
        self._path = path
        self.environment = {"CALLS": str(path)}

    def start(self, at: ProcessorScenario, *options: str) -> Service:
        """Start a process with one of these handlers."""
        return self._services.start("processor", at.settings, *options, environment=self.environment)

    def by(self, pid: int) -> set[Place]:
        """Return the records whose handling a process has begun."""
        return {place for process, place in self._lines() if process == pid}

    def counted(self) -> Counter[Place]:
        """Return how often each record has been begun."""
        return Counter(place for _, place in self._lines())

    def offsets(self) -> list[int]:
        """Return the offsets of all calls, in order."""
        return [offset for _, (_, offset) in self._lines()]

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.offsets()) >= count, what=f"{count} calls")

    def _lines(self) -> Iterator[tuple[int, Place]]:
        written = self._path.read_text().splitlines() if self._path.exists() else []
        for line in written:
            process, partition, offset = map(int, line.split()[1:])
            yield process, (partition, offset)
