"""Delays in settings and topic names: a whole number and a unit, such as 10s, 5m, 2h or 1d."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DELAY: Final = re.compile(r"([1-9][0-9]{0,7})([smhd])")
# As good as never, and still a time that every client can write.
MAX_DELAY_S: Final = 365 * _UNITS["d"]


def parse_delay(text: str) -> int:
    """Return a delay, s.

    Raises:
        ValueError: it isn't one; the message says what was expected.
    """
    match = _DELAY.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < seconds <= MAX_DELAY_S:
        raise ValueError(f"saw {text!r}, expected a whole number and s, m, h or d (10s, 5m, 2h, 1d), at most 365d")
    return seconds


def delay_text(seconds: int) -> str:
    """Return the one spelling of a delay that names a topic: in the largest unit that leaves a whole number."""
    size, unit = next((size, unit) for unit, size in _UNITS.items() if seconds % size == 0)
    return f"{seconds // size}{unit}"
