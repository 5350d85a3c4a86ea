"""Times in headers: ISO 8601, read and written as ms since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from wait_registry.errors import DataError

_EPOCH: Final = datetime(1970, 1, 1)
_MS: Final = timedelta(milliseconds=1)
MIN_TIME_MS: Final = (datetime.min - _EPOCH) // _MS
MAX_TIME_MS: Final = (datetime.max - _EPOCH) // _MS
_MAX_ZONE: Final = timedelta(hours=18)  # java.time.ZoneOffset.MAX
_LONGEST: Final = 128

# What toString() of java.time's Instant, LocalDateTime, OffsetDateTime and ZonedDateTime prints: seconds are omitted
# if they and the fraction are zero, an offset may have seconds, and a region follows the offset in brackets.
_ISO: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r"(?:(Z|[+-][0-9]{2}:[0-5][0-9](?::[0-5][0-9])?)(?:\[[A-Za-z0-9_/+:~.-]{1,64}\])?)?"
)


def format_utc_ms(time_ms: int) -> str:
    """Write a time as ISO 8601 UTC with ms and ``Z``, for example ``2026-11-21T02:20:00.123Z``.

    Args:
        time_ms: ms since the epoch, years 1 to 9999.

    Raises:
        DataError: the time is outside of those years.
    """
    second, ms = divmod(time_ms, 1000)
    return f"{_second_text(second)}.{ms:03d}Z"


def parse_utc(text: str) -> datetime:
    """Read a time that a user has typed, in ISO 8601; without an offset it is UTC.

    Raises:
        ValueError: it is none.
    """
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def parse_utc_ms(text: str) -> int:
    """Read an ISO 8601 time as java.time prints it; one without a zone is UTC.

    Args:
        text: a date and a time, 0 to 9 digits of a second's fraction, ``Z``, an offset or none.

    Returns:
        Ms since the epoch, rounded down.

    Raises:
        DataError: the text isn't such a time, or is outside of the years 1 to 9999; quarantine the record.
    """
    fraction = text[19:]
    if (
        len(fraction) == 5
        and fraction[0] == "."
        and fraction[4] == "Z"
        and fraction.isascii()
        and fraction[1:4].isdigit()
    ):
        # What format_utc_ms writes; expiry times of a batch share their second.
        return _second_ms(text[:19]) + int(fraction[1:4])
    return _parse(text)


@lru_cache(maxsize=64)
def _second_ms(text: str) -> int:
    return _parse(text)


def _parse(text: str) -> int:
    matched = _ISO.fullmatch(text) if len(text) <= _LONGEST else None
    if matched is None:
        raise _unreadable(text)
    try:
        time = datetime.fromisoformat(matched[1])
        zone = datetime.fromisoformat(f"1970-01-01T00:00{matched[2] or 'Z'}").utcoffset() or timedelta()
    except ValueError:
        raise _unreadable(text) from None
    time_ms = (time - _EPOCH - zone) // _MS
    if abs(zone) > _MAX_ZONE or not MIN_TIME_MS <= time_ms <= MAX_TIME_MS:
        raise _unreadable(text)
    return time_ms


# Expiry times of a batch share their second; the cache spares the calendar on the hot path.
@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    if not MIN_TIME_MS <= second * 1000 <= MAX_TIME_MS:
        raise DataError(f"time: saw {second} s since the epoch, expected one in the years 1 to 9999")
    return (_EPOCH + timedelta(seconds=second)).isoformat()


def _unreadable(text: str) -> DataError:
    return DataError(
        f"time: saw {text[:64]!r}, expected ISO 8601 in the years 1 to 9999, for example '2026-11-21T02:20:00.123Z'"
    )
