"""Time to live: when a registration expires, and when it is too late to start a handler under it."""

from __future__ import annotations

from dataclasses import dataclass

from processor.deadline import tick_s
from wait_registry.settings.processor import ProcessorSettings


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """What the rules about time need, s.

    ``start_needs_s`` is what must be left to expiry when a handler is first called (every attempt, every pause, and
    the margin); ``attempt_needs_s`` what must be left when one more attempt begins.
    """

    ttl_s: float
    start_needs_s: float
    attempt_needs_s: float

    def start_by_s(self, registered_s: float) -> float:
        """Return the latest reading of the clock at which a handler may be called for the first time."""
        return registered_s + self.ttl_s - self.start_needs_s

    def may_retry(self, now_s: float, pause_s: float, expires_s: float) -> bool:
        """Return whether one more attempt after a pause would end in time."""
        return now_s + pause_s + self.attempt_needs_s <= expires_s


def time_limits(settings: ProcessorSettings) -> TimeLimits:
    """Derive the limits from the settings."""
    timeout_s, margin_s = settings.handler_timeout_s, settings.margin_s
    # An attempt is ended up to one tick late; a first start must leave room for every attempt all the same.
    all_attempts_s = (timeout_s + tick_s(timeout_s)) * settings.max_attempts + settings.longest_backoffs_s
    return TimeLimits(settings.ttl_s, all_attempts_s + margin_s, timeout_s + margin_s)
