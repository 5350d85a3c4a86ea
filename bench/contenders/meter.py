"""The meter inside a contender: what was used up when its A-th call was over, and when its B-th was.

It costs a call an increment and a comparison, and a call that takes time two readings of the clock more. Standard
library only: it is imported in the peers' environment too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.contenders.percentile import percentile
from bench.contenders.process_usage import NS_PER_S, cpu_ns_of, memory_of

NS_PER_MS: Final = 1_000_000
MS_PER_S: Final = 1000
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class Mark:
    """What stood on the meter when a call was over.

    Attributes:
        calls: that were over.
        clock_ns: of the machine's monotonic clock, which all its processes share.
        cpu_ns: of this process, user and system, all threads.
        calls_ns: what those calls took, added up.
        ordered_ms: what those calls were told to take, added up.
        busy_ns: what they took, and what the calls under way had taken so far: the integral of the calls in flight.
        rss_bytes: of this process now.
        peak_rss_bytes: at most so far.
        p50_ms: half of the latencies noted since the last mark are at most this; None when none were.
        p99_ms: 99 % of them.
        beside_cpu_ns: of the process that is watched beside, the broker say; None when none is.
    """

    calls: int
    clock_ns: int
    cpu_ns: int
    calls_ns: int
    ordered_ms: int
    busy_ns: int
    rss_bytes: int
    peak_rss_bytes: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    beside_cpu_ns: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return asdict(self)


class Meter:
    """Counts the calls of one process, and makes a mark at each of the given counts.

    Calls in several threads hold a lock of their own around `began` and `ended`.

    Args:
        marks: counts of calls, growing.
        reached: given each mark, in the thread whose call reached it.
        beside_pid: a process whose processor time stands on each mark too; 0 for none.
    """

    __slots__ = (
        "_began_ns",
        "_beside_pid",
        "_marks",
        "_next",
        "_reached",
        "_running",
        "calls",
        "calls_ns",
        "latencies_ns",
        "ordered_ms",
    )

    def __init__(self, marks: Iterable[int], reached: Callable[[Mark], None], beside_pid: int = 0) -> None:
        self._marks: Iterator[int] = iter(marks)
        self._reached = reached
        self._next = next(self._marks, NEVER)
        self._beside_pid = beside_pid
        self._running = 0
        self._began_ns = 0  # the beginnings of the calls under way, added up
        self.calls = 0
        self.calls_ns = 0
        self.ordered_ms = 0
        self.latencies_ns: list[int] = []

    def count(self) -> None:
        """Count a call that took no time."""
        self.calls += 1
        if self.calls == self._next:
            self._mark()

    def began(self) -> int:
        """Count a call as under way; hand what is returned to `ended`."""
        now_ns = time.monotonic_ns()
        self._running += 1
        self._began_ns += now_ns
        return now_ns

    def ended(self, began_ns: int, ordered_ms: int) -> None:
        """Count a call as over, which was told to take so long."""
        self._running -= 1
        self.ordered_ms += ordered_ms
        self._began_ns -= began_ns
        self.calls_ns += time.monotonic_ns() - began_ns
        self.count()

    def note(self, latency_ns: int) -> None:
        """Count a call that took no time and began so long after its record was published."""
        self.latencies_ns.append(latency_ns)
        self.count()

    def _mark(self) -> None:
        clock_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        busy_ns = self.calls_ns + self._running * clock_ns - self._began_ns
        beside_cpu_ns = cpu_ns_of(self._beside_pid) if self._beside_pid else None
        memory = memory_of()
        latencies_ms = [ns / NS_PER_MS for ns in sorted(self.latencies_ns)]
        self.latencies_ns.clear()
        p50_ms, p99_ms = (percentile(latencies_ms, share) if latencies_ms else None for share in (0.5, 0.99))
        self._next = next(self._marks, NEVER)
        calls = (self.calls_ns, self.ordered_ms, busy_ns)
        self._reached(Mark(self.calls, clock_ns, cpu_ns, *calls, *memory, p50_ms, p99_ms, beside_cpu_ns))


def between(first: Mark, last: Mark) -> dict[str, float]:
    """Return the contenders' line: what was used up between two marks of one process."""
    line: dict[str, float] = {
        "records": last.calls - first.calls,
        "seconds": (last.clock_ns - first.clock_ns) / NS_PER_S,
        "cpu_s": (last.cpu_ns - first.cpu_ns) / NS_PER_S,
        "calls_s": (last.calls_ns - first.calls_ns) / NS_PER_S,
        "ordered_s": (last.ordered_ms - first.ordered_ms) / MS_PER_S,
        "busy_s": (last.busy_ns - first.busy_ns) / NS_PER_S,
        "rss_bytes": last.peak_rss_bytes,
        "rss_now_bytes": last.rss_bytes,
    }
    if last.p50_ms is not None and last.p99_ms is not None:
        line |= {"p50_ms": last.p50_ms, "p99_ms": last.p99_ms}
    if first.beside_cpu_ns is not None and last.beside_cpu_ns is not None:
        line["beside_cpu_s"] = (last.beside_cpu_ns - first.beside_cpu_ns) / NS_PER_S
    return line
