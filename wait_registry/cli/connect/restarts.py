"""When a failed connector is started again: at once, then with growing pauses, at last at a steady pace."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from wait_registry.retry import backoff_s
from wait_registry.settings.connect import ConnectSettings


@dataclass(frozen=True, slots=True)
class RestartRules:
    """Pauses in s: the first, the longest; and the pace at which it ends, so many restarts a window of s."""

    first_s: float
    longest_s: float
    limit: int
    window_s: float

    @classmethod
    def of(cls, settings: ConnectSettings) -> RestartRules:
        """Take them from the settings."""
        return cls(
            settings.restart_backoff_s,
            settings.restart_backoff_max_s,
            settings.restart_limit,
            settings.restart_window_s,
        )

    @property
    def apart_s(self) -> float:
        """How far apart restarts are at the limit, s."""
        return self.window_s / self.limit


class Restarts:
    """The restarts of one connector. Pure: every method takes the time, in s of a clock that never steps.

    The limit is a pace, not a number that no window exceeds. Up to ``limit`` restarts come as their growing pauses
    allow, since most failures pass soon. When the window that ends now has seen so many, the next is ``window / limit``
    after the last: a connector that fails all the time is restarted ``limit`` times a window, evenly, and never waits
    longer than that for a restart that may help. So no window of that length, wherever it begins, sees twice the limit:
    at most ``limit`` quick ones and ``limit - 1`` at the pace.
    """

    def __init__(self, rules: RestartRules) -> None:
        self._rules = rules
        self._times: deque[float] = deque()

    def note(self, now_s: float) -> None:
        """Take down a restart."""
        self._times.append(now_s)

    def within_window(self, now_s: float) -> int:
        """Return how many there were within the window that ends now."""
        while self._times and self._times[0] <= now_s - self._rules.window_s:
            self._times.popleft()
        return len(self._times)

    def limit_reached(self, now_s: float) -> bool:
        """Tell whether restarting doesn't help and somebody must look.

        It begins with the restart that reaches the limit, and ends when the connector has needed none for twice the
        time that they are apart then, or the window has seen fewer.
        """
        failing = self.within_window(now_s) >= self._rules.limit
        return failing and now_s < self._times[-1] + 2 * self._rules.apart_s

    def due(self, now_s: float) -> bool:
        """Tell whether the next restart may be now."""
        count = self.within_window(now_s)
        return count == 0 or now_s >= self._times[-1] + self._pause_s(count)

    def _pause_s(self, count: int) -> float:
        rules = self._rules
        if count >= rules.limit:
            return rules.apart_s
        return backoff_s(count, rules.first_s, rules.longest_s)
