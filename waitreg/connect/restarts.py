"""How often a connector may be restarted: at once, then after growing pauses, then at the pace of the limit."""

from __future__ import annotations

from collections import deque

from wait_registry.outage import backoff_s
from wait_registry.settings.connect import ConnectSettings


class Restarts:
    """The restarts of one connector. Pure: every method takes the time, in s of a clock that never steps.

    The limit is a pace. Up to ``connect.restart_limit`` restarts come as their growing pauses allow, since most
    failures pass soon. When the window that ends now has seen that many, the next is `apart_s` after the last. So a
    connector that always fails is restarted evenly, ``limit`` times per window, and never waits longer for a restart
    that may help. No window, wherever it begins, sees twice the limit: at most ``limit`` quick restarts and
    ``limit - 1`` at the pace.
    """

    def __init__(self, settings: ConnectSettings) -> None:
        self._settings = settings
        self._times: deque[float] = deque()

    @property
    def apart_s(self) -> float:
        """The time between restarts at the limit, s."""
        return self._settings.restart_window_s / self._settings.restart_limit

    def note(self, now_s: float) -> None:
        """Record a restart."""
        self._times.append(now_s)

    def due(self, now_s: float) -> bool:
        """Return whether the next restart may be now."""
        count, settings = self._within_window(now_s), self._settings
        if count == 0:
            return True
        at_limit = count >= settings.restart_limit
        pause_s = backoff_s(count, settings.restart_backoff_s, settings.restart_backoff_max_s)
        return now_s >= self._times[-1] + (self.apart_s if at_limit else pause_s)

    def limit_reached(self, now_s: float) -> bool:
        """Return whether restarts don't help, so that an operator must act.

        It begins with the restart that reaches the limit, and ends when the connector has needed none for twice
        `apart_s`, or the window has seen fewer.
        """
        failing = self._within_window(now_s) >= self._settings.restart_limit
        return failing and now_s < self._times[-1] + 2 * self.apart_s

    def _within_window(self, now_s: float) -> int:
        while self._times and self._times[0] <= now_s - self._settings.restart_window_s:
            self._times.popleft()
        return len(self._times)
