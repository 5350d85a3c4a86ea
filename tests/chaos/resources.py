"""What processes take over time: resident memory, threads, open files; and whether it grows."""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import fmean

import psutil

from tests.chaos.companion import Companion
from tests.chaos.service import Service

# Spark's pools for the removal of what jobs have abandoned, by the names of their threads: after each garbage
# collection they grow by a thread a task (128 each at most), and a minute later they are empty. No leak shows in them.
BREATHING_POOLS = ("block-manager-storage-async", "block-manager-ask")
COMM_CHARACTERS = 15  # of a thread's name are kept by the kernel
MEASURES = ("rss_bytes", "threads", "open_files")
# Fewer say nothing about a trend.
LEAST_STRETCHES = 3
LEAST_SHARE = 0.9
MIB = 1 << 20
# What `spark.driver_memory` gives by default, which no run changes.
HEAP_BYTES = 512 * MIB
# Besides its heap: Spark's classes; compiled code; a hundred threads' stacks, symbols, what malloc keeps; what is on
# its way to Python, of one batch (`sink.max_batch_bytes`) or chunk.
JVM_BESIDE_BYTES = (160 + 96 + 64 + 32) * MIB
# Python of the sink in a run of minutes: the interpreter with pyspark, pyarrow and three clients; a batch ten times: as
# it comes, condensed and gathered while another is sorted, decoded, on its way out, and malloc's gaps between them
# (docs/decisions/0018). Of the sweeper: the interpreter with its clients; Spark's daemon, and a worker
# for each core of `local[2]`.
SINK_PYTHON_BYTES = (160 + 10 * 32) * MIB
SWEEPER_PYTHON_BYTES = (96 + 64 + 2 * 96) * MIB
# Of all processes of a service together at one moment of a random run.
MOST_BYTES: Mapping[str, int] = {
    "processor": 300_000_000,
    "sink": HEAP_BYTES + JVM_BESIDE_BYTES + SINK_PYTHON_BYTES,
    "sweeper": HEAP_BYTES + JVM_BESIDE_BYTES + SWEEPER_PYTHON_BYTES,
}
# While it catches up for long, a sink holds more: at most what its container has in docker-compose.yml, where it would
# be killed for another byte.
CATCHING_UP_BYTES = 2048 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """One process at one moment: ``name`` with what it is ("sink-1 java"), ``at_s`` of the monotonic clock.

    All that is read of all services in one look has one ``at_s``, that of its beginning.
    """

    at_s: float
    name: str
    pid: int
    rss_bytes: int
    threads: int
    open_files: int


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through the least of each of so many stretches: their mean, and what was gained over the time."""

    name: str
    measure: str
    mean: float
    growth: float
    over_s: float
    stretches: int

    @property
    def per_hour(self) -> float:
        """The slope, an hour."""
        return self.growth / self.over_s * 3600 if self.over_s else 0.0


class Resources(Companion):
    """Reads the processes of services from /proc in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service], interval_s: float = 1.0) -> None:
        self._services = list(services)
        super().__init__("resources", interval_s, self._look)
        self.readings: list[Reading] = []

    def between(self, began_s: float, ended_s: float) -> list[Reading]:
        """Return the readings of a stretch of the monotonic clock."""
        return [reading for reading in self.readings if began_s <= reading.at_s <= ended_s]

    def write(self, path: Path) -> None:
        """Write all readings as CSV, for whoever wants to see how something grew."""
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(field.name for field in fields(Reading))
            table.writerows(astuple(reading) for reading in self.readings)

    def _look(self) -> None:
        at_s = time.monotonic()
        for service in self._services:
            self.readings += _of_service(service, at_s)


def _of_service(service: Service, at_s: float) -> Iterator[Reading]:
    """Read a service's own process and its JVM; Spark's Python workers, which come and go, are skipped."""
    tree = service.tree()
    for process in tree:
        try:
            name = process.name()
            if process is not tree[0] and name != "java":
                continue
            with process.oneshot():
                yield Reading(
                    at_s,
                    f"{service.name} {'java' if name == 'java' else 'python'}",
                    process.pid,
                    process.memory_info().rss,
                    _threads(process),
                    process.num_fds(),
                )
        except psutil.Error:
            continue  # it has ended meanwhile; who never can be read is missed by `unread`


def _threads(process: psutil.Process) -> int:
    """Count threads, those of `BREATHING_POOLS` apart; raises psutil.NoSuchProcess."""
    pools = tuple(name[:COMM_CHARACTERS] for name in BREATHING_POOLS)
    count = 0
    for thread in process.threads():
        with suppress(OSError):  # it has ended meanwhile
            name = Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text("utf-8", "replace")
            count += not name.startswith(pools)
    return count


def most_held(readings: Iterable[Reading], service: str) -> int:
    """Return the most that the processes of a service held together in one look, bytes; 0 when it was never read."""
    looks: dict[float, dict[str, int]] = defaultdict(dict)
    for reading in readings:
        if reading.name.startswith(f"{service} "):
            # A JVM about to run a program is there twice for a moment, with the same memory.
            held = looks[reading.at_s]
            held[reading.name] = max(reading.rss_bytes, held.get(reading.name, 0))
    return max((sum(held.values()) for held in looks.values()), default=0)


def trends(readings: Iterable[Reading], began_s: float, stretch_s: float) -> list[Trend]:
    """Return the trend of each measure of each process, by the least value of each stretch of time.

    Peaks don't count: how many connections and threads are open follows what there is to do, and how slow the machine
    is. What leaks is there when nothing is to do, too. A last stretch that isn't over is skipped.

    Args:
        readings: of any processes.
        began_s: when the first stretch begins, of the monotonic clock.
        stretch_s: how long each is; long enough to have a moment of rest in it.
    """
    taken = list(readings)
    whole = int((max((reading.at_s for reading in taken), default=began_s) - began_s) / stretch_s)
    by_process: dict[tuple[str, int], dict[int, list[Reading]]] = defaultdict(lambda: defaultdict(list))
    for reading in taken:
        number = int((reading.at_s - began_s) // stretch_s)
        if 0 <= number < whole:
            by_process[(reading.name, reading.pid)][number].append(reading)
    return [
        _trend(name, measure, stretch_s, {number: _least(own, measure) for number, own in stretches.items()})
        for (name, _), stretches in sorted(by_process.items())
        for measure in MEASURES
    ]


def _least(readings: Iterable[Reading], measure: str) -> float:
    return min(float(getattr(reading, measure)) for reading in readings)


def _trend(name: str, measure: str, stretch_s: float, least: Mapping[int, float]) -> Trend:
    over = max(least) - min(least)
    mean_x, mean_y = fmean(least), fmean(least.values())
    spread = sum((x - mean_x) ** 2 for x in least)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in least.items()) / spread if spread else 0.0
    return Trend(name, measure, mean_y, slope * over, over * stretch_s, len(least))


def unread(found: Iterable[Trend], names: Iterable[str], stretches: int) -> list[str]:
    """Say of which processes too little was read to speak of a trend.

    Args:
        found: the trends.
        names: the processes that should have been read: "processor-1 python".
        stretches: how many there were.
    """
    read: dict[str, int] = defaultdict(int)
    for trend in found:
        read[trend.name] = max(read[trend.name], trend.stretches)
    needed = max(LEAST_STRETCHES, LEAST_SHARE * stretches)
    missing = [name for name in names if read[name] < needed]
    return [f"{name} was read in {read[name]} of {stretches} stretches of time" for name in missing]


# Growth over the time looked at that still counts as flat: a share of the mean, and a number. Heaps breathe.
ALLOWED: Mapping[str, tuple[float, float]] = {
    "rss_bytes": (0.03, 8_000_000.0),
    "threads": (0.0, 2.0),
    "open_files": (0.0, 4.0),
}


def flat(trend: Trend) -> bool:
    """Return whether a trend is no growth, by `ALLOWED`."""
    share, number = ALLOWED[trend.measure]
    return trend.growth <= share * trend.mean + number


def processes_of(names: Iterable[str]) -> list[str]:
    """Return which processes of these services are read."""
    return [
        f"{name} {program}"
        for name in names
        for program in ("python", *(() if name.startswith("processor") else ("java",)))
    ]


def told(trend: Trend) -> str:
    """Tell a trend in a line."""
    unit, factor = ("MB", 1e-6) if trend.measure == "rss_bytes" else ("", 1.0)
    verdict = "flat" if flat(trend) else "GROWS"
    return (
        f"  {trend.name:20} {trend.measure:10} mean {trend.mean * factor:9.1f} {unit:2} "
        f"{trend.growth * factor:+8.2f} {unit:2} in {trend.over_s:5.0f} s ({trend.per_hour * factor:+9.2f} an hour) "
        f"{verdict}"
    )
