"""Whether a processor does its work now; being up is not enough."""

from __future__ import annotations

# The flush within a rebalance holds it up for processor.flush_timeout_s, 10 s by default.
STANDSTILL_S = 15.0
# A broker that answers takes milliseconds; one that is frozen keeps its connections open, so no client notices.
UNACKNOWLEDGED_S = 15.0


def not_ready_reasons(
    draining: bool,
    joined: bool,
    blocked: int,
    max_in_flight: int,
    without_start: int = 0,
    standstill_s: float = 0.0,
    registering_s: float = 0.0,
    settling_s: float = 0.0,
) -> list[str]:
    """Return why records aren't worked on, as people read it; empty when they are.

    Args:
        draining: the process is about to end.
        joined: the group has assigned partitions, be it none of them.
        blocked: calls that are over their limit and go on all the same.
        max_in_flight: calls at once, at most (N).
        without_start: partitions of which the broker hasn't told where they begin.
        standstill_s: for how long the event loop has not turned.
        registering_s: for how long the oldest unacknowledged wait record has waited.
        settling_s: for how long tombstones and dead letters have waited without one being acknowledged.
    """
    reasons = []
    if draining:
        reasons.append("draining")
    elif not joined:
        reasons.append("no partitions assigned yet")
    if without_start:
        reasons.append(f"{without_start} partitions can't begin: the broker doesn't tell their committed offsets")
    if blocked >= max_in_flight:
        reasons.append(f"all {max_in_flight} slots are blocked by handlers that timed out and have not returned")
    if standstill_s > STANDSTILL_S:
        reasons.append(
            f"the event loop has stood still for {standstill_s:.0f} s: a handler blocks it (it must await what it "
            "waits for, or be a plain function), or a rebalance waits for the broker; the log names the line"
        )
    for what, waited_s in (("wait records", registering_s), ("tombstones or dead letters", settling_s)):
        if waited_s > UNACKNOWLEDGED_S:
            reasons.append(
                f"{what} unacknowledged for {waited_s:.0f} s: the broker doesn't answer, or not enough of it"
            )
    return reasons
