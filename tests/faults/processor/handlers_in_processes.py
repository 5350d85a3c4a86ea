"""Handlers of the processes that the fault tests start; each call is written down before it begins."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.faults.processor.observation import Place
from tests.integration.processor.scenario import ProcessorScenario
from tests.support.processes import Service, Services
from wait_registry.handler import Record

HANDLERS = "tests.faults.processor.handlers_in_processes"
LEAK_BYTES = 16 << 20

_leaked: list[bytes] = []


def _note(record: Record) -> None:
    # One short write to a file opened for appending is atomic, and outlives the process.
    with Path(os.environ["CALLS"]).open("ab") as calls:
        calls.write(b"%d %d %d\n" % (os.getpid(), record.partition, record.offset))


async def takes_a_while(record: Record) -> None:
    """Be done after a moment."""
    _note(record)
    await asyncio.sleep(0.02)


def hangs(record: Record) -> None:
    """Never return from records that say so."""
    _note(record)
    if record.value == b"hang":
        threading.Event().wait()


async def leaks(record: Record) -> None:
    """Keep some more memory with every record."""
    _note(record)
    _leaked.append(os.urandom(LEAK_BYTES))


class Calls:
    """The file that they write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.environment = {"CALLS": str(path)}

    def start(self, services: Services, at: ProcessorScenario, *options: str) -> Service:
        """Start a process with one of these handlers."""
        return services.start("processor", at.settings, *options, environment=self.environment)

    def by(self, pid: int) -> set[Place]:
        """Return the records whose handling a process has begun."""
        return {place for process, place in self._lines() if process == pid}

    def counted(self) -> Counter[Place]:
        """Return how often each record has been begun."""
        return Counter(place for _, place in self._lines())

    def _lines(self) -> Iterator[tuple[int, Place]]:
        written = self._path.read_text().splitlines() if self._path.exists() else []
        for line in written:
            process, partition, offset = map(int, line.split())
            yield process, (partition, offset)
