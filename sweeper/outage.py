"""Sweeps that fail one after another are one outage: told when it begins, now and then, and when it is over. Pure."""

from __future__ import annotations

REMINDER_S = 300.0


class Outage:
    """Counts failed sweeps in a row; times are those of a monotonic clock, s."""

    def __init__(self) -> None:
        self._failed = 0
        self._began_s = 0.0
        self._told_s = 0.0

    def failed(self, now_s: float) -> bool:
        """Take note of a failed sweep; return whether people have to be told of it."""
        begins = self._failed == 0
        self._failed += 1
        if begins:
            self._began_s = now_s
        if not begins and now_s - self._told_s < REMINDER_S:
            return False
        self._told_s = now_s
        return True

    def over(self, now_s: float) -> str | None:
        """Take note of a sweep that didn't fail; return what is to be said of the outage before it, None for none."""
        failed, self._failed = self._failed, 0
        if failed == 0:
            return None
        return f"sweeps work again: {failed} had failed, the first of them {now_s - self._began_s:.0f} s ago"
