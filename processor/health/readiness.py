"""Whether a processor processes records now; running isn't enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Longer than a busy machine's hiccup.
LOOP_BLOCKED_S = 15.0
# An answer takes milliseconds; a frozen broker keeps its connections open, so no client notices it.
UNACKNOWLEDGED_S = 15.0


@dataclass(frozen=True, slots=True)
class Condition:
    """What a processor does at a moment.

    Args:
        in_flight_limit: calls at once, at most, now (N).
        draining: the process is stopping.
        joined: the group has assigned partitions, perhaps none.
        blocked: calls that continue after their limit.
        without_start: partitions without a start offset from the broker.
        blocked_s: for how long the event loop has been blocked, s.
        registering_s: for how long the oldest unacknowledged wait record has waited, s.
        settling_s: for how long tombstones and dead letters have waited without one being acknowledged, s.
        refused: records whose dead letters are too large.
    """

    in_flight_limit: int
    draining: bool = False
    joined: bool = True
    blocked: int = 0
    without_start: int = 0
    blocked_s: float = 0.0
    registering_s: float = 0.0
    settling_s: float = 0.0
    refused: int = 0

    def reasons(self) -> Iterator[str]:
        """Yield why records aren't processed, as text for people; nothing if they are."""
        if self.draining:
            yield "draining"
        elif not self.joined:
            yield "no partitions assigned yet"
        if self.without_start:
            yield f"{self.without_start} partitions can't start: the broker doesn't return their committed offsets"
        if self.refused:
            yield f"{self.refused} records hold their offsets: their dead letters are too large; the log names them"
        if self.blocked >= self.in_flight_limit:
            yield f"all {self.in_flight_limit} slots are blocked by handlers that timed out and have not returned"
        if self.blocked_s > LOOP_BLOCKED_S:
            yield (
                f"the event loop has been blocked for {self.blocked_s:.0f} s by a handler (it must await its calls, or "
                "be a plain function); the log names the line"
            )
        waits = {"wait records": self.registering_s, "tombstones or dead letters": self.settling_s}
        for what, waited_s in waits.items():
            # A blocked loop reads no acknowledgment, so that time says nothing about the broker.
            if waited_s - self.blocked_s > UNACKNOWLEDGED_S:
                yield (
                    f"{what} unacknowledged for {waited_s - self.blocked_s:.0f} s: broker unavailable or too few "
                    "in-sync replicas"
                )
