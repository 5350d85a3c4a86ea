"""What stands in a record's value: how long its call takes, when it was published, and something to carry.

The first 8 bytes are the milliseconds of the call in decimal digits, the next 20 the time of publishing (ns since the
epoch), so that every contender, in whatever language, makes the very same calls.
"""

from __future__ import annotations

from typing import Final

CALL_DIGITS: Final = 8
SENT_DIGITS: Final = 20
HEAD_BYTES: Final = CALL_DIGITS + SENT_DIGITS


def value_of(call_ms: int, sent_ns: int, filler: bytes) -> bytes:
    """Return a value: how long its call takes, ms; when it is published, ns since the epoch; and what fills it up."""
    return b"%08d%020d" % (call_ms, sent_ns) + filler


def call_ms(value: bytes) -> int:
    """Return how long the call takes, ms."""
    return int(value[:CALL_DIGITS])


def sent_ns(value: bytes) -> int:
    """Return when the record was published, ns since the epoch."""
    return int(value[CALL_DIGITS:HEAD_BYTES])
