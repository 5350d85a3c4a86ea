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
from tests.chaos.history.history import MemorySample
from tests.chaos.service import Service

# Spark's pools for the removal of what jobs have abandoned, by the names of their threads: after each garbage
# collection they grow by a thread per task (128 each at most), and a minute later they are empty. They show no leak.
BREATHING_POOLS = ("block-manager-storage-async", "block-manager-ask")
COMM_CHARACTERS = 15  # of a thread's name are kept by the kernel
# Fewer say nothing about a trend.
LEAST_STRETCHES = 3
LEAST_SHARE = 0.9
# A service may be down for much of a random run; fewer readings say nothing about the most that it held.
LEAST_SEEN, LEAST_SEEN_SHARE = 3, 0.2
# A JVM comes to its size within this time; a shorter soak says nothing about its memory.
LEAST_OF_JVM_S = 1_200
# Growth over the measured time that still counts as flat: a share of the mean, and a number. Heaps breathe.
ALLOWED: Mapping[str, tuple[float, float]] = {
    "rss_bytes": (0.03, 8_000_000.0),
    "threads": (0.0, 2.0),
    "open_files": (0.0, 4.0),
}


class Reading(NamedTuple):
    """One process of a service at one moment: its ``program`` is "python" for the service itself, "java", or "worker".

    All readings of one iteration, of all services, have one ``at_s`` of the monotonic clock, that of its beginning.
    """

    at_s: float
    service: str
    program: str
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
        """Whether it is no growth, by `ALLOWED`, or too short to say so."""
        share, number = ALLOWED[self.measure]
        is_short = self.name.endswith("java") and self.measure == "rss_bytes" and self.over_s < LEAST_OF_JVM_S
        return is_short or self.growth <= share * self.mean + number

    def __str__(self) -> str:
        change = f"{self.mean:,.0f} {self.growth:+,.0f} in {self.over_s:.0f} s"
        return f"{self.name} {self.measure} {change} {'flat' if self.flat else 'GROWS'}"


Stretch = tuple[float, float]
"""A time of the monotonic clock, from and to."""


class Resources(Companion):
    """Reads the processes of services from /proc in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service], interval_s: float = 1.0) -> None:
        self._services = list(services)
        self._began_s = time.monotonic()
        super().__init__("resources", interval_s, self._read)
        self.readings: list[Reading] = []

    def has_read(self, moment_s: float) -> bool:
        """Return whether the services were read at a moment of the monotonic clock, or later."""
        return bool(self.readings) and self.readings[-1].at_s >= moment_s

    def between(self, began_s: float, ended_s: float) -> list[Reading]:
        """Return the readings of a stretch of the monotonic clock."""
        return [reading for reading in self.readings if began_s <= reading.at_s <= ended_s]

    def missing(self) -> str:
        """Return which services were hardly read since the beginning; empty if there is none."""
        lasted_s = time.monotonic() - self._began_s
        seen = Counter(one.name for one in held(self.readings))
        few = [one.name for one in self._services if seen[one.name] < max(LEAST_SEEN, LEAST_SEEN_SHARE * lasted_s)]
        return "; ".join(f"the memory of {name} was read {seen[name]} times in {lasted_s:.0f} s" for name in few)

    def write(self, path: Path) -> None:
        """Write all readings as CSV, to show how something grew."""
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([Reading._fields, *self.readings])

    def _read(self) -> None:
        at_s = time.monotonic()
        for service in self._services:
            self.readings += _of_service(service, at_s)


def _of_service(service: Service, at_s: float) -> Iterator[Reading]:
    for number, (process, name) in enumerate(service.programs()):
        with suppress(psutil.Error), process.oneshot():  # it has ended meanwhile
            program = "java" if name == "java" else "worker" if number else "python"
            counts = (process.memory_info().rss, _threads(process), process.num_fds())
            yield Reading(at_s, service.name, program, process.pid, *counts)


def _threads(process: psutil.Process) -> int:
    """Count threads, except those of `BREATHING_POOLS`; raises psutil.NoSuchProcess."""
    pools = tuple(name[:COMM_CHARACTERS] for name in BREATHING_POOLS)
    count = 0
    for thread in process.threads():
        with suppress(OSError):  # it has ended meanwhile
            name = Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text("utf-8", "replace")
            count += not name.startswith(pools)
    return count


def held(readings: Iterable[Reading]) -> list[MemorySample]:
    """Return what the processes of each service held together at each moment."""
    sums: Counter[tuple[float, str]] = Counter()
    for one in readings:
        sums[one.at_s, one.service] += one.rss_bytes
    return [MemorySample(name, bytes_) for (_, name), bytes_ in sums.items()]


def trends(readings: Iterable[Reading], services: Sequence[str], stretches: Sequence[Stretch]) -> list[Trend]:
    """Return the trend of each measure of each service's Python and JVM, by the least value of each stretch of time.

    Peaks follow the load and the machine's speed; what leaks is there at rest, too. Spark's workers come and go.
    """
    found: dict[tuple[str, str, int], dict[float, list[Reading]]] = defaultdict(lambda: defaultdict(list))
    for one in readings:
        for began_s, ended_s in stretches:
            if one.service in services and one.program != "worker" and began_s <= one.at_s <= ended_s:
                found[one.service, one.program, one.pid][began_s].append(one)
    return [
        _trend(f"{service} {program}", measure, own)
        for (service, program, _), own in sorted(found.items())
        for measure in ALLOWED
    ]


def _trend(name: str, measure: str, stretches: Mapping[float, Sequence[Reading]]) -> Trend:
    least = {began_s: min(float(getattr(one, measure)) for one in own) for began_s, own in stretches.items()}
    over_s = max(least) - min(least)
    slope = linear_regression(list(least), list(least.values())).slope if over_s else 0.0
    return Trend(name, measure, fmean(least.values()), slope * over_s, over_s, len(least))


def unread(found: Iterable[Trend], services: Iterable[str], stretches: int) -> list[str]:
    """Return which services were read too rarely to show a trend of the memory of their Python."""
    read = {one.name: one.stretches for one in found if one.measure == "rss_bytes"}
    needed = max(LEAST_STRETCHES, LEAST_SHARE * stretches)
    missing = [name for name in services if read.get(f"{name} python", 0) < needed]
    return [f"{name} was read in {read.get(f'{name} python', 0)} of {stretches} stretches of time" for name in missing]
