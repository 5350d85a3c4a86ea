"""What processes take over time: resident memory, threads, open files; and whether it grows."""

from __future__ import annotations

import csv
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import fmean
from types import TracebackType

import psutil

from tests.chaos.service import Service

MEASURES = ("rss_bytes", "threads", "open_files")


@dataclass(frozen=True, slots=True)
class Reading:
    """One process at one moment: ``at_s`` of the monotonic clock, ``name`` with what it is ("sink-1 java")."""

    at_s: float
    name: str
    pid: int
    rss_bytes: int
    threads: int
    open_files: int


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through readings, by least squares: the mean, and what was gained from the first to the last."""

    name: str
    measure: str
    mean: float
    growth: float
    over_s: float

    @property
    def per_hour(self) -> float:
        """The slope, an hour."""
        return self.growth / self.over_s * 3600 if self.over_s else 0.0


class Resources:
    """Reads the processes of services from /proc in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service], interval_s: float = 1.0) -> None:
        self._services = list(services)
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="resources", daemon=True)
        self.readings: list[Reading] = []

    def __enter__(self) -> Resources:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, began_s: float, ended_s: float) -> list[Reading]:
        """Return the readings of a stretch of the monotonic clock."""
        return [reading for reading in self.readings if began_s <= reading.at_s <= ended_s]

    def write(self, path: Path) -> None:
        """Write all readings as CSV, for whoever wants to see how something grew."""
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(field.name for field in fields(Reading))
            table.writerows(astuple(reading) for reading in self.readings)

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_s):
            for service in self._services:
                self.readings += _of_service(service)


def _of_service(service: Service) -> Iterator[Reading]:
    """Read a service's own process and its JVM; Spark's Python workers come and go with each job."""
    tree = service.tree()
    for process in tree:
        try:
            name = process.name()
            if process is not tree[0] and name != "java":
                continue
            with process.oneshot():
                yield Reading(
                    time.monotonic(),
                    f"{service.name} {'java' if name == 'java' else 'python'}",
                    process.pid,
                    process.memory_info().rss,
                    process.num_threads(),
                    process.num_fds(),
                )
        except psutil.NoSuchProcess:
            continue


def trends(readings: Iterable[Reading]) -> list[Trend]:
    """Return the trend of each measure of each process that was read at least three times."""
    by_process: dict[tuple[str, int], list[Reading]] = defaultdict(list)
    for reading in readings:
        by_process[(reading.name, reading.pid)].append(reading)
    return [
        _trend(name, measure, [(reading.at_s, float(getattr(reading, measure))) for reading in own])
        for (name, _), own in sorted(by_process.items())
        for measure in MEASURES
        if len(own) >= 3
    ]


def _trend(name: str, measure: str, points: Sequence[tuple[float, float]]) -> Trend:
    over_s = points[-1][0] - points[0][0]
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return Trend(name, measure, mean_y, slope * over_s, over_s)


# Growth over the time looked at that still counts as flat: a share of the mean, and a number beside it. Heaps breathe.
ALLOWED: Mapping[str, tuple[float, float]] = {
    "rss_bytes": (0.05, 8_000_000.0),
    "threads": (0.0, 2.0),
    "open_files": (0.0, 4.0),
}


def flat(trend: Trend) -> bool:
    """Return whether a trend is no growth, by `ALLOWED`."""
    share, number = ALLOWED[trend.measure]
    return trend.growth <= share * trend.mean + number


def told(trend: Trend) -> str:
    """Tell a trend in a line."""
    unit, factor = ("MB", 1e-6) if trend.measure == "rss_bytes" else ("", 1.0)
    verdict = "flat" if flat(trend) else "GROWS"
    return (
        f"  {trend.name:20} {trend.measure:10} mean {trend.mean * factor:9.1f} {unit:2} "
        f"{trend.growth * factor:+8.2f} {unit:2} in {trend.over_s:5.0f} s ({trend.per_hour * factor:+9.2f} an hour) "
        f"{verdict}"
    )
