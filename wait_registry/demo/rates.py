"""Rate of a run and its limit, computed from the downstream's measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wait_registry.demo.calls import Call


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one strategy: its rate and the limit that the strategy sets."""

    strategy: str
    max_in_flight: int
    records: int
    rate_per_s: float
    limit_per_s: float

    @property
    def share_of_limit(self) -> float:
        """Return the rate as a share of its limit."""
        return self.rate_per_s / self.limit_per_s


def steady_rate_per_s(calls: Iterable[Call]) -> float:
    """Return completions per second between the first and the last tenth of completions; raise ValueError under 20.

    The first and the last tenth are skipped: startup, and slow calls at the end while other slots are idle.
    """
    finished = sorted(call.finished_s for call in calls if call.succeeded)
    if len(finished) < 20:
        raise ValueError(f"{len(finished)} completions are too few to measure a rate; 20 are needed")
    tenth = len(finished) // 10
    first, last = tenth, len(finished) - tenth
    return (last - first) / (finished[last] - finished[first])


def batch_limit_per_s(max_in_flight: int, slowest_call_s: float) -> float:
    """Return the highest possible rate of batches; each ends with its slowest call."""
    return max_in_flight / slowest_call_s


def registry_limit_per_s(max_in_flight: int, mean_call_s: float) -> float:
    """Return the highest possible rate of N worker slots: N divided by the mean call (Little's law)."""
    return max_in_flight / mean_call_s
