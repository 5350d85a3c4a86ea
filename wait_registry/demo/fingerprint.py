"""Digests of key, value and headers that distinguish null from empty and keep the order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """SHA-256 (hex) of key, value and headers; None for a null key or value."""

    key: str | None
    value: str | None
    headers: str


def fingerprint(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None
) -> Fingerprint:
    """Return the fingerprint of a record; two records share it only if no byte of them differs."""
    digest = sha256()
    for name, content in headers or ():
        encoded = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(encoded), encoded))
        digest.update(b"null;" if content is None else b"%d:%b;" % (len(content), content))
    return Fingerprint(_digest(key), _digest(value), digest.hexdigest())


def _digest(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()
