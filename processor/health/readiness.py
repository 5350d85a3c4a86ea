"""Whether a processor processes records now; running isn't enough."""

from __future__ import annotations

# Longer than a busy machine's hiccup.
LOOP_BLOCKED_S = 15.0
# An answer takes milliseconds; a frozen broker keeps its connections open, so no client notices it.
UNACKNOWLEDGED_S = 15.0


def not_ready_reasons(
    draining: bool,
    joined: bool,
    blocked: int,
    max_in_flight: int,
    without_start: int = 0,
    blocked_s: float = 0.0,
    registering_s: float = 0.0,
    settling_s: float = 0.0,
    refused: int = 0,
) -> list[str]:
    """Return why records aren't processed, as text for people; empty if they are.

    Args:
        draining: the process is stopping.
        joined: the group has assigned partitions, perhaps none.
        blocked: calls that continue after their limit.
        max_in_flight: calls at once, at most, now (N).
        without_start: partitions without a start offset from the broker.
        blocked_s: for how long the event loop has been blocked, s.
        registering_s: for how long the oldest unacknowledged wait record has waited.
        settling_s: for how long tombstones and dead letters have waited without one being acknowledged.
        refused: records whose dead letters are too large.
    """
    reasons = []
    if draining:
        reasons.append("draining")
    elif not joined:
        reasons.append("no partitions assigned yet")
    if without_start:
        reasons.append(f"{without_start} partitions can't start: the broker doesn't return their committed offsets")
    if refused:
        reasons.append(f"{refused} records hold their offsets: their dead letters are too large; the log names them")
    if blocked >= max_in_flight:
        reasons.append(f"all {max_in_flight} slots are blocked by handlers that timed out and have not returned")
    if blocked_s > LOOP_BLOCKED_S:
        reasons.append(
            f"the event loop has been blocked for {blocked_s:.0f} s by a handler (it must await its calls, or be a "
            "plain function); the log names the line"
        )
    # A blocked loop reads no acknowledgment, so that time says nothing about the broker.
    return reasons + _unacknowledged(registering_s - blocked_s, settling_s - blocked_s)


def _unacknowledged(registering_s: float, settling_s: float) -> list[str]:
    waits = {"wait records": registering_s, "tombstones or dead letters": settling_s}
    return [
        f"{what} unacknowledged for {waited_s:.0f} s: broker unavailable or too few in-sync replicas"
        for what, waited_s in waits.items()
        if waited_s > UNACKNOWLEDGED_S
    ]
