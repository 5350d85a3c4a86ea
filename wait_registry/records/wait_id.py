"""The wait ID, which is always the same for the same record and the same group."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final

_MAX_TIMESTAMP_MS: Final = (1 << 48) - 1
_VARIANT: Final = 0b10 << 62
_CANONICAL: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def wait_id(
    cluster_id: str, place: tuple[str, int, int], group: str, timestamp_ms: int, edit: bytes | None = None
) -> str:
    """Derive the wait ID of a record: a UUID version 8 (RFC 9562, section 5.8) ordered by the record's time.

    48 bits of time, the version, the first 12 bits of the hash, the variant, the next 62 bits of the hash. The hash is
    SHA-256 over ``waitreg1\\n{cluster id}\\n{topic}\\n{partition}\\n{offset}\\n{group}`` in UTF-8, then
    ``\\n{timestamp_ms}`` if that isn't of 48 bits, and ``\\n{edit}``. So a record of a recreated topic has another ID.

    Args:
        cluster_id: the Kafka cluster's ID.
        place: topic, partition and offset from which the record is consumed now.
        timestamp_ms: the record's timestamp in ms, -1 for none; beyond 48 bits the nearest value is the UUID's time.
        edit: for the idempotency key of an edited record, what its header WAITREG_EDITED says.

    Returns:
        The canonical text of 36 characters.
    """
    topic, partition, offset = place
    hashed = f"waitreg1\n{cluster_id}\n{topic}\n{partition}\n{offset}\n{group}".encode()
    if not 0 <= timestamp_ms <= _MAX_TIMESTAMP_MS:
        hashed = b"%b\n%d" % (hashed, timestamp_ms)
        timestamp_ms = 0 if timestamp_ms < 0 else _MAX_TIMESTAMP_MS
    digest = sha256(hashed if edit is None else b"%b\n%b" % (hashed, edit)).hexdigest()
    # Hexadecimal digits 3 to 18 are bits 12 to 75 of the hash: all but the last two of them are wanted.
    low = "%x" % (_VARIANT | int(digest[3:19], 16) >> 2)
    return f"{_time_and_version(timestamp_ms)}{digest[:3]}-{low[:4]}-{low[4:]}"


# Consecutive records share their ms.
@lru_cache(maxsize=1024)
def _time_and_version(timestamp_ms: int) -> str:
    time = f"{timestamp_ms:012x}"
    return f"{time[:8]}-{time[8:]}-8"


def is_wait_id(text: str) -> bool:
    """Return whether a text can key a wait record: a canonical UUID (in the legacy format a random one)."""
    return _CANONICAL.fullmatch(text) is not None
