"""Numbers as people read them: three significant digits, thousands apart, with their unit."""

from __future__ import annotations

import math
from typing import Final

from bench.harness.target import SIGNS, Target

DIGITS: Final = 3
MOST_DIGITS: Final = 9
SMALLEST_PLAIN: Final = 1e-4


def shown(value: float, unit: str = "", target: Target | None = None) -> str:
    """Return a number in words' width: 55,234.1 as `55,200`, 0.98765 as `0.988`.

    Args:
        value: the number.
        unit: put after it; nothing for a ratio.
        target: what it is held to: as many digits are shown as it takes to see on which side of it the number is.
    """
    digits = DIGITS
    if target is not None:
        while digits < MOST_DIGITS and target.is_met(_rounded(value, digits)) != target.is_met(value):
            digits += 1
    text = f"{int(value)}" if value == int(value) and abs(value) < 1000 else _text(_rounded(value, digits), digits)
    return f"{text} {unit}" if unit else text


def shown_target(target: Target, unit: str = "") -> str:
    """Return a target in the table's words: its own text, or sign, bound and unit."""
    return target.text or f"{SIGNS[target.direction]} {_bound(target.bound)}{f' {unit}' if unit else ''}"


def shown_duration(seconds: float) -> str:
    """Return a duration: `48 s`, `12.5 min`, `3.2 h`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _rounded(value: float, digits: int) -> float:
    return 0.0 if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))


def _text(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    if abs(value) < SMALLEST_PLAIN:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def _bound(value: float) -> str:
    """Return a bound as it was written: 0.75, 50,000."""
    return f"{value:,.10g}"
