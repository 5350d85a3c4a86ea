"""Percentiles by nearest rank. Standard library only: imported in the peers' environment too."""

from __future__ import annotations

import math
from collections.abc import Iterable


def percentile(values: Iterable[float], share: float) -> float:
    """Return the least value that at least this share of the values doesn't exceed.

    Raises:
        ValueError: there is none.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a percentile of nothing")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
