"""How long ago a moment was, or how soon it is, in few characters; the page has the moment itself, too."""

from __future__ import annotations

from datetime import datetime
from typing import Final

# The unit, its length and up to which distance it is used, s.
_UNITS: Final = (("s", 1, 60), ("min", 60, 3_600), ("h", 3_600, 172_800), ("d", 86_400, None))
_NOW_S: Final = 1.0


def ago(at: datetime, now: datetime) -> str:
    """Return the distance between two times.

    Args:
        at: with a time zone.
        now: when the page was asked for, with a time zone.

    Returns:
        Such as "12 min ago" or "in 5 h": whole units, rounded down; "now" within a second.
    """
    seconds = (now - at).total_seconds()
    distance = abs(seconds)
    if distance < _NOW_S:
        return "now"
    unit, length = next((unit, length) for unit, length, most in _UNITS if most is None or distance < most)
    text = f"{int(distance // length)} {unit}"
    return f"{text} ago" if seconds > 0 else f"in {text}"
