"""Several processes measured as one: what they did between two moments at which all of them were at work.

Each process writes marks with the machine's monotonic clock. What stood on its meter at a moment between two marks is
taken as lying on the line between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from bench.contenders.meter import MS_PER_S, Mark
from bench.contenders.process_usage import NS_PER_S

Series = Sequence[Mark]


def shared_window(processes: Sequence[Series], from_calls: int, to_calls: int) -> dict[str, float] | None:
    """Return the contenders' line for all processes together.

    The window begins when all of them have made a mark and `from_calls` calls are over, in all. It ends when
    `to_calls - from_calls` more are.

    Args:
        processes: the marks of each, in order.
        from_calls, to_calls: of all processes together.

    Returns:
        None as long as the window isn't over.
    """
    if any(len(series) < 2 for series in processes) or sum(series[-1].calls for series in processes) < to_calls:
        return None
    first_ns = max(series[0].clock_ns for series in processes)
    last_ns = min(series[-1].clock_ns for series in processes)
    moments = sorted({mark.clock_ns for series in processes for mark in series if first_ns <= mark.clock_ns <= last_ns})
    begin_ns = next((ns for ns in moments if _calls(processes, ns) >= from_calls), None)
    if begin_ns is None:
        return None
    enough = _calls(processes, begin_ns) + to_calls - from_calls
    end_ns = next((ns for ns in moments if _calls(processes, ns) >= enough), None)
    if end_ns is None:
        return None
    return _between(processes, begin_ns, end_ns)


def _between(processes: Sequence[Series], begin_ns: int, end_ns: int) -> dict[str, float]:
    def used(figure: str) -> float:
        return sum(_at(series, end_ns, figure) - _at(series, begin_ns, figure) for series in processes)

    return {
        "records": used("calls"),
        "seconds": (end_ns - begin_ns) / NS_PER_S,
        "cpu_s": used("cpu_ns") / NS_PER_S,
        "calls_s": used("calls_ns") / NS_PER_S,
        "ordered_s": used("ordered_ms") / MS_PER_S,
        "busy_s": used("busy_ns") / NS_PER_S,
        "rss_bytes": sum(series[-1].peak_rss_bytes for series in processes),
        "rss_now_bytes": sum(series[-1].rss_bytes for series in processes),
        # How unlike they were: 0 when each did as much as any other.
        "uneven_share": _uneven([_at(s, end_ns, "calls") - _at(s, begin_ns, "calls") for s in processes]),
    }


def _uneven(calls: Sequence[float]) -> float:
    return (max(calls) - min(calls)) / max(calls) if max(calls) else 0.0


def _calls(processes: Sequence[Series], moment_ns: int) -> float:
    return sum(_at(series, moment_ns, "calls") for series in processes)


def _at(series: Series, moment_ns: int, figure: str) -> float:
    """Return a figure of a process at a moment between its first and its last mark."""
    after = bisect_left(series, moment_ns, key=lambda mark: mark.clock_ns)
    later = series[after]
    if later.clock_ns == moment_ns or after == 0:
        return float(getattr(later, figure))
    earlier = series[after - 1]
    share = (moment_ns - earlier.clock_ns) / (later.clock_ns - earlier.clock_ns)
    low, high = getattr(earlier, figure), getattr(later, figure)
    return float(low + share * (high - low))
