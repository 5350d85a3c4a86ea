"""The meter inside a contender: what was used up when its A-th call was over, and when its B-th was.

It costs a call an increment and a comparison, and a call that takes time two readings of the clock more. Standard
library only: it is imported in the peers' environment and by other checkouts too.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
TICK_NS: Final = NS_PER_S // os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat behind name and state (proc(5)); the name ends with the last bracket.
UTIME, STIME, STARTTIME = 10, 11, 18
NEVER: Final = -1


def cpu_ns_of(pid: int) -> int:
    """Return the CPU time of a process so far, user and system, all threads; to the nearest tick (10 ms)."""
    fields = _stat(pid)
    return (fields[UTIME] + fields[STIME]) * TICK_NS


def started_ns_of(pid: int) -> int:
    """Return when a process was started by the monotonic clock, to the nearest tick."""
    age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _stat(pid)[STARTTIME] * TICK_NS
    return time.monotonic_ns() - age_ns


def _stat(pid: int) -> list[int]:
    return [
        int(field) for field in Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1:]
    ]


def memory_of(pid: int | str = "self") -> tuple[int, int]:
    """Return the resident memory of a process now, and at its highest, bytes."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    now, most = (int(values[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def percentile(values: Iterable[float], share: float) -> float:
    """Return the least value that at least this share of the values doesn't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Mark:
    """The meter when a call was over: the machine's monotonic clock, and CPU time of all threads, user and system.

    `busy_ns` is the integral of the calls in flight. Latencies are those since the last mark.
    """

    calls: int
    clock_ns: int
    cpu_ns: int
    busy_ns: int
    rss_bytes: int
    peak_rss_bytes: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    broker_cpu_ns: int | None = None


class Meter:
    """Counts the calls of one process, and hands on a mark at each of the given counts, which grow.

    Calls in several threads hold a lock of their own around `began` and `ended`.
    """

    def __init__(self, marks: Iterable[int], reached: Callable[[Mark], None], broker_pid: int = 0) -> None:
        self._marks: Iterator[int] = iter(marks)
        self._reached = reached
        self._next = next(self._marks, NEVER)
        self._broker_pid = broker_pid
        self._running = self._busy_ns = self._changed_ns = 0
        self._latencies_ns: list[int] = []
        self.calls = 0

    def count(self) -> None:
        """Count a call that took no time."""
        self.calls += 1
        if self.calls == self._next:
            self._mark()

    def began(self) -> None:
        """Count a call as under way."""
        self._change(1)

    def ended(self) -> None:
        """Count a call as over."""
        self._change(-1)
        self.count()

    def note(self, latency_ns: int) -> None:
        """Count a call that took no time and began so long after its record was published."""
        self._latencies_ns.append(latency_ns)
        self.count()

    def _change(self, running: int) -> None:
        now_ns = time.monotonic_ns()
        self._busy_ns += self._running * (now_ns - self._changed_ns)
        self._changed_ns = now_ns
        self._running += running

    def _mark(self) -> None:
        self._change(0)
        cpu_ns = time.process_time_ns()
        broker_cpu_ns = cpu_ns_of(self._broker_pid) if self._broker_pid else None
        latencies_ms = [ns / NS_PER_MS for ns in self._latencies_ns]
        self._latencies_ns.clear()
        p50_ms, p99_ms = (percentile(latencies_ms, share) if latencies_ms else None for share in (0.5, 0.99))
        self._next = next(self._marks, NEVER)
        used = (self.calls, self._changed_ns, cpu_ns, self._busy_ns)
        self._reached(Mark(*used, *memory_of(), p50_ms, p99_ms, broker_cpu_ns))


def between(first: Mark, last: Mark) -> dict[str, float]:
    """Return the contenders' line: what was used up between two marks of one process."""
    line: dict[str, float] = {
        "records": last.calls - first.calls,
        "seconds": (last.clock_ns - first.clock_ns) / NS_PER_S,
        "cpu_s": (last.cpu_ns - first.cpu_ns) / NS_PER_S,
        "busy_s": (last.busy_ns - first.busy_ns) / NS_PER_S,
        "rss_bytes": last.peak_rss_bytes,
        "rss_now_bytes": last.rss_bytes,
    }
    if last.p50_ms is not None and last.p99_ms is not None:
        line |= {"p50_ms": last.p50_ms, "p99_ms": last.p99_ms}
    if first.broker_cpu_ns is not None and last.broker_cpu_ns is not None:
        line["broker_cpu_s"] = (last.broker_cpu_ns - first.broker_cpu_ns) / NS_PER_S
    return line
