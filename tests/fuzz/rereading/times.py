"""An ISO 8601 time, by calendar arithmetic of its own."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r"(?:(Z|[+-]\d\d:\d\d(?::\d\d)?)(?:\[[A-Za-z0-9_/+:~.-]{1,64}\])?)?",
    re.ASCII,
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONGEST = 128


def reread_time_ms(text: str) -> int | None:
    """Return ms since the epoch, rounded down; None when it is no time of the years 1 to 9999."""
    found = _TIME.fullmatch(text)
    if found is None or len(text) > _LONGEST:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= _days_of(year, month)):
        return None
    offset_s = _offset_s(found[8] or "Z")
    if hour > 23 or minute > 59 or second > 59 or offset_s is None:
        return None
    days = _days_before(year) + sum(_days_of(year, earlier) for earlier in range(1, month)) + day - 1
    seconds = (days - _days_before(1970)) * 86_400 + hour * 3600 + minute * 60 + second - offset_s
    time_ms = seconds * 1000 + int(f"{found[7] or ''}000"[:3])
    first, last = -_days_before(1970) * 86_400_000, (_days_before(10_000) - _days_before(1970)) * 86_400_000
    return time_ms if first <= time_ms < last else None


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_of(year: int, month: int) -> int:
    return _MONTH_DAYS[month - 1] + (month == 2 and _leap(year))


def _days_before(year: int) -> int:
    """Return the days from the beginning of the year 1 to that of a year."""
    done = year - 1
    return done * 365 + done // 4 - done // 100 + done // 400


def _offset_s(zone: str) -> int | None:
    if zone == "Z":
        return 0
    hour, minute, second = (int(part) for part in f"{zone[1:]}:00".split(":")[:3])
    size = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or size > 18 * 3600:
        return None
    return -size if zone[0] == "-" else size
