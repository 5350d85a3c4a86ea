"""Decides what follows a failed attempt, within the time to live: another one in this process, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.calls.deadline import tick_s
from processor.handlers.failures import asked_pause_s, is_retriable
from wait_registry.outage import backoff_s
from wait_registry.settings.processor import ProcessorSettings


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How much time to live the steps of a record need, s.

    ``start_needs_s`` is what must be left to expiry when a handler is first called (every attempt, every pause, and
    the margin); ``attempt_needs_s`` what must be left when one more attempt begins.
    """

    ttl_s: float
    start_needs_s: float
    attempt_needs_s: float

    def may_retry(self, now_s: float, pause_s: float, expires_s: float) -> bool:
        """Return whether one more attempt after a pause would end in time."""
        return now_s + pause_s + self.attempt_needs_s <= expires_s


def time_limits(settings: ProcessorSettings) -> TimeLimits:
    """Derive the limits from the settings."""
    timeout_s, margin_s = settings.handler_timeout_s, settings.margin_s
    # An attempt is ended up to one tick late; a first start must leave room for every attempt all the same.
    all_attempts_s = (timeout_s + tick_s(timeout_s)) * settings.max_attempts + settings.longest_backoffs_s
    return TimeLimits(settings.ttl_s, all_attempts_s + margin_s, timeout_s + margin_s)


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Exponential backoff with full jitter, within the time to live.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Args:
        settings: attempts and pauses.
        limits: the rules about time.
        random: returns a number in [0, 1).
    """

    settings: ProcessorSettings
    limits: TimeLimits
    random: Callable[[], float]

    def pause_s(self, error: BaseException, attempts: int, now_s: float, expires_s: float) -> float | None:
        """Decide about a record after a failed attempt.

        Args:
            error: how the attempt failed.
            attempts: attempts made in this process, the failed one included.
            now_s: the monotonic clock.
            expires_s: when the registration expires, by the same clock.

        Returns:
            The pause before the next attempt, s, or None: there is none in this process.
        """
        if attempts >= self.settings.max_attempts or not is_retriable(error):
            return None
        asked_s, longest_s = asked_pause_s(error), self.settings.backoff_max_s
        if asked_s > longest_s and self.settings.retry.delays:
            return None
        pause_s = self.random() * backoff_s(attempts, self.settings.backoff_initial_s, longest_s)
        pause_s = max(pause_s, min(longest_s, asked_s))
        return pause_s if self.limits.may_retry(now_s, pause_s, expires_s) else None

    def still_in_time(self, now_s: float, expires_s: float) -> bool:
        """Return whether an attempt that starts now would end in time."""
        return self.limits.may_retry(now_s, 0.0, expires_s)
