"""Sweeps that fail one after another are one outage: told when it begins, now and then, and when it is over. Pure."""

from __future__ import annotations

import re

REMINDER_S = 300.0
# Ports, offsets and times differ from one failure to the next of the same kind.
NUMBERS = re.compile(r"\d+")


class Outage:
    """Counts failed sweeps in a row; times are those of a monotonic clock, s."""

    def __init__(self) -> None:
        self._failed = 0
        self._began_s = 0.0
        self._told_s = 0.0
        self._told = ""

    def failed(self, now_s: float, reason: str) -> bool:
        """Take note of a sweep that failed for a reason; return whether people have to be told of it."""
        begins, kind = self._failed == 0, NUMBERS.sub("", reason)
        self._failed += 1
        if begins:
            self._began_s = now_s
        if not begins and kind == self._told and now_s - self._told_s < REMINDER_S:
            return False
        self._told_s, self._told = now_s, kind
        return True

    def over(self, now_s: float) -> str | None:
        """Take note of a sweep that didn't fail; return what is to be said of the outage before it, None for none."""
        failed, self._failed = self._failed, 0
        if failed == 0:
            return None
        return f"sweeps work again: {failed} had failed, the first of them {now_s - self._began_s:.0f} s ago"
