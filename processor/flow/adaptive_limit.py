"""A number of worker slots that follows what the called service can take (``processor.max_in_flight = "auto"``).

The rule is a gradient on latency and failures, as in Netflix's Gradient2 and Envoy's adaptive concurrency:

    next limit  =  calls in flight x (latency without load / latency now) x (1 / (1 + failures per success))  +  room

The room is the square root of the calls in flight. Decision 0028 has the measurements, and what differs:

- The latency is the median of a window of calls, because single calls are slow for reasons of their own.
- "Calls in flight" are those at the start of a call, which is what its latency depends on. So a queue that drains
  slowly isn't taken for a new one.
- If half of the calls in flight take as long as all of them, load isn't the reason. The new latency, or the share of
  failures, then counts as normal. The limit is halved for one window from time to time to find this out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from processor.flow.concurrency import EndedCall

# Fewer calls give no median that can be compared.
LEAST_CALLS: Final = 50
LEAST_SUCCESSES: Final = 10
# Without successes there is nothing to learn: the service is away, and `Pace` slows the calls.
MOST_CALLS: Final = 500
FIRST_LIMIT: Final = 20
MOST_CUT: Final = 0.5
# The median of a window varies by a fifth.
TOLERANCE: Final = 1.2
# Failures per success that mean nothing.
FEW_FAILURES: Final = 0.1
FAILURES_TOLERANCE: Final = 1.5
# A clock may show no difference.
SHORTEST_S: Final = 1e-6
SAME: Final = 0.8
# While windows show no load, the room grows to this multiple.
MOST_STEPS: Final = 4
PROBE_EVERY_S: Final = 30.0
PROBES_SHARE: Final = 0.05
# A probe takes this multiple of an idle call at most.
PROBE_LIMIT: Final = 50


class _Window(NamedTuple):
    """A number of ended calls: their mean number of calls in flight at the start, and at most; their median; failures.

    ``failures`` are per success, ``limit`` is the limit at the window's end.
    """

    running: float
    busiest: int
    seconds: float
    failures: float
    limit: float


class AdaptiveLimit:
    """Finds the limit between two bounds.

    Args:
        least: lower bound of the limit.
        most: upper bound of the limit.
    """

    learns: Final = True

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most
        self._limit = float(min(most, max(least, FIRST_LIMIT)))
        # What calls take, and how many fail, without load.
        self._idle_s: float | None = None
        self._idle_failures = 0.0
        self._steps = 0
        # With more load, while the limit is cut: compared with what comes of it.
        self._before: _Window | None = None
        self._probe_began_s: float | None = None
        self._probe_s = math.inf
        # Since the last window.
        self._ended: list[EndedCall] = []

    @property
    def current(self) -> int:
        """How many calls may run now."""
        return int(self._limit)

    def learn(self, ended: Sequence[EndedCall], running: int, now_s: float) -> None:
        """Take calls that have ended."""
        self._give_probe_up(now_s)
        if running > self.current:
            return  # Few start while the limit is cut, so those that end are the slow ones.
        self._ended += ended
        least = max(LEAST_CALLS, self.current // 2) * (1 if self._probe_began_s is None else 2)
        if len(self._ended) < least:
            return
        successes = sorted(call.seconds for call in self._ended if not call.failed)
        if len(successes) >= LEAST_SUCCESSES:
            window = self._window(successes)
            self._ended.clear()
            self._judge(window, now_s)
        elif len(self._ended) >= max(least, MOST_CALLS):
            self._ended.clear()

    def _window(self, seconds: list[float]) -> _Window:
        running = [call.running for call in self._ended]
        median_s = max(SHORTEST_S, seconds[len(seconds) // 2])
        failures = (len(running) - len(seconds)) / len(seconds)
        return _Window(sum(running) / len(running), max(running), median_s, failures, self._limit)

    def _judge(self, now: _Window, now_s: float) -> None:
        if self._probe_s == math.inf:
            self._probe_s = now_s + PROBE_EVERY_S
            return  # Of the first calls the quick ones have ended.
        if self._idle_s is None:
            self._idle_s = now.seconds
        if now.failures < self._idle_failures:
            self._idle_failures += 0.1 * (now.failures - self._idle_failures)
        if self._probe_began_s is not None:
            self._end_probe(now, self._probe_began_s, now_s)
            return
        if now.running * 3 / 4 <= self._least:
            self._idle(now)
        self._follow(now, now_s)

    def _follow(self, now: _Window, now_s: float) -> None:
        share = self._share(now)
        self._steps = min(self._steps + 1, MOST_STEPS) if share == 1 else 0
        target = now.running * share + math.sqrt(now.running) * max(1, self._steps)
        if target < now.running:
            self._cut(now, target)
            return
        self._before = None
        if now.busiest >= self.current:
            self._set(max(self._limit, target))
        if now_s >= self._probe_s and 2 * now.busiest >= self.current and self._limit > 1.5 * self._least:
            self._before, self._probe_began_s = now, now_s
            self._set(now.running * MOST_CUT)

    def _share(self, now: _Window) -> float:
        """Return the share of the calls in flight that the service can take: 1 if there is no sign of load."""
        assert self._idle_s is not None
        failures = now.failures - FAILURES_TOLERANCE * self._idle_failures - FEW_FAILURES
        return min(1.0, TOLERANCE * self._idle_s / now.seconds) / (1 + max(0.0, failures))

    def _cut(self, now: _Window, target: float) -> None:
        before = self._before
        if before is None or now.running >= 0.9 * before.running:
            self._before = now if before is None else now._replace(limit=before.limit)
        elif now.running <= MOST_CUT * before.running:
            if _is_same(now, before):
                self._idle(now)
                self._before = None
                self._set(before.limit)
                return
            self._before = now
        self._set(min(self._limit, max(target, MOST_CUT * self._limit)))

    def _give_probe_up(self, now_s: float) -> None:
        """End a probe that lasts too long: calls that hang leave no room for others while the limit is halved."""
        if self._probe_began_s is None or now_s - self._probe_began_s < PROBE_LIMIT * (self._idle_s or 0):
            return
        self._ended.clear()
        self._restore(self._probe_began_s, now_s)

    def _restore(self, began_s: float, now_s: float) -> None:
        assert self._before is not None
        self._set(self._before.limit)
        self._before = self._probe_began_s = None
        self._probe_s = now_s + max(PROBE_EVERY_S, (now_s - began_s) / PROBES_SHARE)

    def _end_probe(self, now: _Window, began_s: float, now_s: float) -> None:
        before = self._before
        assert before is not None
        assert self._idle_s is not None
        if now.running > 1.1 * self.current:
            return  # Many of these calls started before the probe.
        if now.seconds <= self._idle_s / SAME or _is_same(now, before):
            self._idle(now)
        self._restore(began_s, now_s)

    def _idle(self, now: _Window) -> None:
        """Take a window for what calls are like without load."""
        assert self._idle_s is not None
        near = 2 / 3 < now.seconds / self._idle_s < 3 / 2
        self._idle_s = math.sqrt(now.seconds * self._idle_s) if near else now.seconds
        self._idle_failures = now.failures

    def _set(self, limit: float) -> None:
        self._limit = min(self._most, max(self._least, limit))


def _is_same(now: _Window, before: _Window) -> bool:
    """Return whether calls take as long, and fail as often, as with twice the load."""
    ratios = now.seconds / before.seconds, (now.failures + FEW_FAILURES) / (before.failures + FEW_FAILURES)
    return all(SAME <= ratio <= 1 / SAME for ratio in ratios)
