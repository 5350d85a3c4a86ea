"""Whether a process' memory stays what it is: what it held at first, at last, and how it grew in between."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, linear_regression

Sample = tuple[float, float]
LEAST_SAMPLES = 10


def memory_trend(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the means of the first and of the last tenth, and the slope of the line through all.

    Args:
        samples: (s, bytes), in order; with fewer than ten there is no trend.
    """
    if len(samples) < LEAST_SAMPLES:
        return {}
    tenth = len(samples) // LEAST_SAMPLES
    seconds, sizes = zip(*samples, strict=True)
    return {
        "rss_first_bytes": fmean(sizes[:tenth]),
        "rss_last_bytes": fmean(sizes[-tenth:]),
        "rss_bytes_per_s": linear_regression(seconds, sizes).slope,
    }
