"""Sizes of the demo."""

from __future__ import annotations

from dataclasses import dataclass

MIXTURE = "10%:1s,90%:200ms"
SLOWEST_S = 1.0
MEAN_S = 0.28
BATCH = "batch"
STRATEGIES = (BATCH, "eager", "deferred")
"""The batch consumer, and wait-registry in two of its registration modes."""
# Of what N worker slots can do. Without a backlog, quick records don't wait and `deferred` registers slow ones only; a
# machine that stalls for a second has worked that off some seconds later.
OFFERED = 0.8


def published_per_s(max_in_flight: int) -> float:
    """Return how many records per second are published for each strategy."""
    return OFFERED * max_in_flight / MEAN_S


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Sizes of the demo.

    ``in_flight``: the Ns at which all strategies run. ``seconds``: about how long each of these runs takes.
    ``crash_records`` are published for the run whose processor is killed after ``kill_after`` completions; its
    records expire ``crash_ttl_s`` after their registration.
    """

    in_flight: tuple[int, ...] = (10, 50)
    seconds: float = 25.0
    crash_records: int = 300
    crash_in_flight: int = 10
    kill_after: int = 60
    crash_ttl_s: float = 13.0
    crash_timeout_s: float = 2.0
    crash_margin_s: float = 1.5
    skew_allowance_s: float = 1.0
    sweep_interval_s: float = 2.0

    def records(self, strategy: str, max_in_flight: int) -> int:
        """Return how many records keep a strategy busy for ``seconds``: whole fives of batches."""
        per_s = max_in_flight / SLOWEST_S if strategy == BATCH else published_per_s(max_in_flight)
        step = 5 * max_in_flight  # the measured span starts and ends at the same point of a batch
        return max(20, round(per_s * self.seconds / step) * step)
