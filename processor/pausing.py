"""What is done while there is no room: stay alive in the group, keep what that brings, and pause if it goes on."""

from __future__ import annotations

import math

POLL_EVERY_S = 0.5
PAUSE_AT = 4
RESUME_SHARE = 4


class Pausing:
    """Decides when to poll without room, when to pause and when to resume.

    A member must poll to take part in rebalances, and a poll may bring a record. Pausing at once would throw away what
    librdkafka has fetched ahead (up to 16 MiB) each time that handlers are slower than half a second; so
    the first few records are kept back, unregistered, and only then the partitions are paused.
    """

    def __init__(self) -> None:
        self.paused = False
        self._polled_s = -math.inf

    def polled(self, now_s: float) -> None:
        """Take note of a poll, at ``now_s`` of the monotonic clock."""
        self._polled_s = now_s

    def poll_due(self, now_s: float) -> bool:
        """Return whether to poll although there is no room."""
        return now_s - self._polled_s >= POLL_EVERY_S

    def pause_due(self, kept_back: int) -> bool:
        """Return whether to pause now, with so many records kept back."""
        return not self.paused and kept_back >= PAUSE_AT

    def resume_due(self, room: int, whole: int) -> bool:
        """Return whether to resume now: there is a quarter of the room that there would be with nothing in hand.

        Args:
            room: how many records may be consumed now.
            whole: how many could be if none were in hand, by whichever bound is tighter, that of records or that of
                bytes. Measured by anything larger, a processor that has finished all might wait for more for ever.
        """
        return self.paused and room * RESUME_SHARE >= whole
