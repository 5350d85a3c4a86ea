"""Compares this host's clock with the broker's, which judges expiry and delays, by the append times of records."""

from __future__ import annotations

import logging
import math

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from processor.fault import Fault
from processor.health.stats import Stats
from wait_registry.clock import Clock
from wait_registry.errors import PermanentError
from wait_registry.records.times import format_utc_ms

log = logging.getLogger(__name__)

WARN_EVERY_S = 60.0


class ClockWatch:
    """Warns when the clocks differ by a quarter of the margin, and stops the process at half of it.

    Args:
        margin_s: ``processor.margin_s``, s.
    """

    def __init__(self, margin_s: float, clock: Clock, fault: Fault, stats: Stats) -> None:
        self._margin_s = margin_s
        self._clock = clock
        self._fault = fault
        self._stats = stats
        self._warned_s = -math.inf

    def now_ms(self) -> int:
        """Read this host's wall clock."""
        return self._clock.now_ms()

    def observe(self, timestamp: tuple[int, int], sent_ms: int) -> None:
        """Compare the timestamp of a delivery report with the own clock between sending and now."""
        kind, broker_ms = timestamp
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            return
        now_ms = self._clock.now_ms()
        skew_ms = clock_skew_ms(broker_ms, sent_ms, now_ms)
        self._stats.skewed(skew_ms)
        skew_s = abs(skew_ms) / 1000
        if skew_s < warn_at_s(self._margin_s):
            return
        said = (
            f"the broker's clock said {format_utc_ms(broker_ms)} when it took a record, this host's clock said "
            f"{format_utc_ms(sent_ms)} before and {format_utc_ms(now_ms)} after: {skew_ms / 1000:+.3f} s, "
            f"processor.margin_s is {self._margin_s:g} s"
        )
        if skew_s >= stop_at_s(self._margin_s):
            self._fault.report(PermanentError(f"{said}; stopped at half of it. Synchronize the clocks (NTP)."))
        else:
            self._warn(f"{said}; the process stops at half of it")

    def observe_polled(self, timestamp: tuple[int, int]) -> None:
        """Compare the timestamp of a polled record, which shows a broker that is ahead, never one that is behind.

        It never stops the process: the clock may have been set right since, and the record would be polled again.
        """
        kind, broker_ms = timestamp
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            return
        ahead_ms = broker_ms - self._clock.now_ms()
        if ahead_ms / 1000 >= warn_at_s(self._margin_s):
            self._warn(f"a record was polled whose append time is {ahead_ms / 1000:.3f} s ahead of this host's clock")

    def _warn(self, said: str) -> None:
        if self._clock.monotonic() - self._warned_s >= WARN_EVERY_S:
            self._warned_s = self._clock.monotonic()
            log.warning("%s. Synchronize the clocks (NTP).", said)


def clock_skew_ms(broker_ms: int, sent_ms: int, acknowledged_ms: int) -> int:
    """Return by how much the broker's clock is certainly off ours, ms (positive: it is ahead).

    The broker stamped the record between sending and acknowledgment, so a time within that interval is no difference.
    """
    if broker_ms < sent_ms:
        return broker_ms - sent_ms
    if broker_ms > acknowledged_ms:
        return broker_ms - acknowledged_ms
    return 0


def stop_at_s(margin_s: float) -> float:
    """Return the difference at which the process stops, s: half of the margin."""
    return margin_s / 2


def warn_at_s(margin_s: float) -> float:
    """Return the difference at which a warning is logged, s: half of what stops the process."""
    return stop_at_s(margin_s) / 2
