"""Is the sweeper ready: do sweeps happen and succeed?"""

from __future__ import annotations

from wait_registry.service.health import Health

INTERVALS = 3
GRACE_S = 60.0
# A large backlog takes minutes; a sweep that takes longer than this counts as blocked.
LONGEST_SWEEP_S = 600.0


def longest_silence_s(interval_s: float) -> float:
    """Return how long a working sweeper that sweeps every ``interval_s`` may be silent, s."""
    return INTERVALS * interval_s + GRACE_S


def readiness(
    scheduled: bool,
    trouble: str | None,
    swept_s_ago: float | None,
    interval_s: float,
    running_s: float | None = None,
    postgres: str | None = None,
) -> Health:
    """Return whether sweeps happen and succeed.

    Args:
        scheduled: the schedule is alive.
        trouble: why the last sweep could do nothing; None when it could.
        swept_s_ago: since the last sweep ended, s; None before the first.
        interval_s: between sweeps, s.
        running_s: since the sweep that is running started, s; None when none is.
        postgres: why Postgres can't be used now; None while it can.
    """
    reasons = []
    if not scheduled:
        reasons.append("the schedule is not running")
    if swept_s_ago is None:
        reasons.append("no sweep has ended yet")
    elif running_s is None and swept_s_ago > longest_silence_s(interval_s):
        reasons.append(f"the last sweep ended {swept_s_ago:.0f} s ago, one is due every {interval_s:g} s")
    if running_s is not None and running_s > max(LONGEST_SWEEP_S, INTERVALS * interval_s):
        reasons.append(f"a sweep has been running for {running_s:.0f} s")
    if postgres is not None:
        reasons.append(postgres)
    if trouble is not None:
        reasons.append(f"the last sweep failed: {trouble}")
    return Health.of(reasons)
