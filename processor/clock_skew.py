"""The own clock against the broker's: expiry is written by the one and judged by others."""

from __future__ import annotations

from enum import Enum


class SkewVerdict(Enum):
    """What a difference of the clocks asks for."""

    FINE = "fine"
    WARN = "warn"
    STOP = "stop"


def clock_skew_ms(broker_ms: int, sent_ms: int, acknowledged_ms: int) -> int:
    """Return by how much the broker's clock is certainly off ours, ms (positive: it is ahead).

    The broker stamped the record at some moment between sending and acknowledgment, so anything within that interval
    is no difference.
    """
    if broker_ms < sent_ms:
        return broker_ms - sent_ms
    if broker_ms > acknowledged_ms:
        return broker_ms - acknowledged_ms
    return 0


def stop_at_s(margin_s: float) -> float:
    """Return the difference at which the process stops, s: half of the margin."""
    return margin_s / 2


def judge_skew(skew_ms: int, margin_s: float) -> SkewVerdict:
    """Decide about a difference: a warning at half of what stops the process."""
    size_s = abs(skew_ms) / 1000
    if size_s >= stop_at_s(margin_s):
        return SkewVerdict.STOP
    if size_s >= stop_at_s(margin_s) / 2:
        return SkewVerdict.WARN
    return SkewVerdict.FINE
