"""What processes take over time: resident memory, threads, open files; and whether it grows."""

from __future__ import annotations

import csv
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean, linear_regression
from typing import NamedTuple

import psutil

from tests.chaos.companion import Companion
from tests.chaos.service import Service

# Spark's pools for the removal of what jobs have abandoned, by the names of their threads: after each garbage
# collection they grow by a thread per task (128 each at most), and a minute later they are empty. They show no leak.
BREATHING_POOLS = ("block-manager-storage-async", "block-manager-ask")
COMM_CHARACTERS = 15  # of a thread's name are kept by the kernel
# Fewer say nothing about a trend.
LEAST_STRETCHES = 3
LEAST_SHARE = 0.9
# Growth over the measured time that still counts as flat: a share of the mean, and a number. Heaps breathe.
ALLOWED: Mapping[str, tuple[float, float]] = {
    "rss_bytes": (0.03, 8_000_000.0),
    "threads": (0.0, 2.0),
    "open_files": (0.0, 4.0),
}


class Reading(NamedTuple):
    """One process at one moment: ``name`` with what it is ("sink-1 java"), ``at_s`` of the monotonic clock.

    All readings of one iteration, of all services, have one ``at_s``, that of its beginning.
    """

    at_s: float
    name: str
    pid: int
    rss_bytes: int
    threads: int
    open_files: int


class Trend(NamedTuple):
    """A straight line through the least value of each stretch: their mean, and the gain over the time."""

    name: str
    measure: str
    mean: float
    growth: float
    over_s: float
    stretches: int

    @property
    def flat(self) -> bool:
        """Whether it is no growth, by `ALLOWED`."""
        share, number = ALLOWED[self.measure]
        return self.growth <= share * self.mean + number

    def __str__(self) -> str:
        change = f"{self.mean:,.0f} {self.growth:+,.0f} in {self.over_s:.0f} s"
        return f"{self.name} {self.measure} {change} {'flat' if self.flat else 'GROWS'}"


class Resources(Companion):
    """Reads the processes of services from /proc in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service], interval_s: float = 1.0) -> None:
        self._services = list(services)
        super().__init__("resources", interval_s, self._read)
        self.readings: list[Reading] = []

    def has_read(self, moment_s: float) -> bool:
        """Return whether the services were read at a moment of the monotonic clock, or later."""
        return bool(self.readings) and self.readings[-1].at_s >= moment_s

    def between(self, began_s: float, ended_s: float) -> list[Reading]:
        """Return the readings of a stretch of the monotonic clock."""
        return [reading for reading in self.readings if began_s <= reading.at_s <= ended_s]

    def write(self, path: Path) -> None:
        """Write all readings as CSV, to show how something grew."""
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([Reading._fields, *self.readings])

    def _read(self) -> None:
        at_s = time.monotonic()
        for service in self._services:
            self.readings += _of_service(service, at_s)


def _of_service(service: Service, at_s: float) -> Iterator[Reading]:
    """Read a service's own process and its JVM; Spark's Python workers, which come and go, are skipped."""
    for number, (process, program) in enumerate(service.programs()):
        if number and program != "java":
            continue
        with suppress(psutil.Error), process.oneshot():  # it has ended meanwhile
            name = f"{service.name} {'java' if program == 'java' else 'python'}"
            counts = (process.memory_info().rss, _threads(process), process.num_fds())
            yield Reading(at_s, name, process.pid, *counts)


def _threads(process: psutil.Process) -> int:
    """Count threads, except those of `BREATHING_POOLS`; raises psutil.NoSuchProcess."""
    pools = tuple(name[:COMM_CHARACTERS] for name in BREATHING_POOLS)
    count = 0
    for thread in process.threads():
        with suppress(OSError):  # it has ended meanwhile
            name = Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text("utf-8", "replace")
            count += not name.startswith(pools)
    return count


def most_held(readings: Iterable[Reading], service: str) -> int:
    """Return the most that the processes of a service held together at once, bytes; 0 when it was never read."""
    held: Counter[float] = Counter()
    for one in readings:
        if one.name.startswith(f"{service} "):
            held[one.at_s] += one.rss_bytes
    return max(held.values(), default=0)


def trends(readings: Iterable[Reading], began_s: float, stretch_s: float) -> list[Trend]:
    """Return the trend of each measure of each process, by the least value of each stretch of time.

    Peaks follow the load and the machine's speed; what leaks is there at rest, too. The first stretch begins at
    ``began_s`` of the monotonic clock; a last one that isn't over is skipped.
    """
    taken = list(readings)
    whole = int((max((reading.at_s for reading in taken), default=began_s) - began_s) / stretch_s)
    by_process: dict[tuple[str, int], dict[int, list[Reading]]] = defaultdict(lambda: defaultdict(list))
    for reading in taken:
        number = int((reading.at_s - began_s) // stretch_s)
        if 0 <= number < whole:
            by_process[reading.name, reading.pid][number].append(reading)
    return [
        _trend(name, measure, stretch_s, {number: _least(own, measure) for number, own in stretches.items()})
        for (name, _), stretches in sorted(by_process.items())
        for measure in ALLOWED
    ]


def _least(readings: Iterable[Reading], measure: str) -> float:
    return min(float(getattr(reading, measure)) for reading in readings)


def _trend(name: str, measure: str, stretch_s: float, least: Mapping[int, float]) -> Trend:
    over = max(least) - min(least)
    slope = linear_regression(list(least), list(least.values())).slope if over else 0.0
    return Trend(name, measure, fmean(least.values()), slope * over, over * stretch_s, len(least))


def unread(found: Iterable[Trend], names: Iterable[str], stretches: int) -> list[str]:
    """Return which of these processes ("processor-1 python") were read too rarely to show a trend."""
    read = Counter({trend.name: trend.stretches for trend in sorted(found, key=lambda trend: trend.stretches)})
    needed = max(LEAST_STRETCHES, LEAST_SHARE * stretches)
    missing = [name for name in names if read[name] < needed]
    return [f"{name} was read in {read[name]} of {stretches} stretches of time" for name in missing]


def processes_of(names: Iterable[str]) -> list[str]:
    """Return which processes of these services are read."""
    processes = [f"{name} {program}" for name in names for program in ("python", "java")]
    return [process for process in processes if not (process.startswith("processor") and process.endswith("java"))]
