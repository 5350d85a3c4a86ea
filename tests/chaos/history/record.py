"""A record as it stands in a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from waitreg.fingerprint import Fingerprint, fingerprint

UNREADABLE_HEADERS: Final = "a name isn't UTF-8"
"""In the place of a digest: the client can't read these headers, ours or the processor's."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """Nothing decoded; ``timestamp_ms`` is -1 when there is none, ``headers`` None when the client can't read them."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None


def content_of(record: RawRecord) -> Fingerprint:
    """Return the fingerprint of the whole record."""
    whole = fingerprint(record.key, record.value, record.headers)
    return whole if record.headers is not None else Fingerprint(whole.key, whole.value, UNREADABLE_HEADERS)
