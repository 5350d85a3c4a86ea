"""A record as it stands in a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wait_registry.demo.fingerprint import Fingerprint, fingerprint

UNREADABLE_HEADERS: Final = "a name isn't UTF-8"
"""In the place of a digest: the client can't read these headers, ours or the processor's."""
# A character of a name is six in JSON at worst; brackets, quotes and commas; all that a wait record says of its own.
_NAMES: Final = 6
_HEADER: Final = 16
_AROUND: Final = 4_000


@dataclass(frozen=True, slots=True)
class RawRecord:
    """Nothing decoded; ``timestamp_ms`` is -1 when there is none, ``headers`` None when the client can't read them.

    ``timestamp_type`` is "create", "append" or "none".
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp_type: str = "create"


def content_of(record: RawRecord) -> Fingerprint:
    """Return the fingerprint of the whole record."""
    whole = fingerprint(record.key, record.value, record.headers)
    return whole if record.headers is not None else Fingerprint(whole.key, whole.value, UNREADABLE_HEADERS)


def registered_bytes(record: RawRecord) -> int:
    """Return the most that a record can take in a wait record, which has its headers as JSON: names escaped, base64."""
    own = sum(_NAMES * len(name) + 2 * len(value or b"") + _HEADER for name, value in record.headers or ())
    return len(record.key or b"") + len(record.value or b"") + own + _AROUND


def input_bytes(record: RawRecord) -> int:
    """Return what a record counts for in its processor's hands: key, value, names and values of headers."""
    own = sum(len(name) + len(value or b"") for name, value in record.headers or ())
    return len(record.key or b"") + len(record.value or b"") + own
