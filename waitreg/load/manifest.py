"""What the load generator published, by place and content: the first column of every reconciliation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from waitreg.load.json_lines import read_json_lines

Coordinates = tuple[str, int, int]
"""Topic, partition and offset of a record."""


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


@dataclass(frozen=True, slots=True)
class Published:
    """One record the broker acknowledged: its place, its timestamp (ms) and the fingerprint of its content."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    fingerprint: Fingerprint

    @property
    def coordinates(self) -> Coordinates:
        """Return topic, partition and offset."""
        return (self.topic, self.partition, self.offset)


def read_manifest(path: Path) -> Iterator[Published]:
    """Return the records of a manifest; raise DataError, naming the line, when the file is something else."""
    return read_json_lines(
        path, "manifest", lambda line: Published(**{**line, "fingerprint": Fingerprint(**line["fingerprint"])})
    )
