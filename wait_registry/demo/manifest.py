"""What the load generator published, as JSON lines: the first column of every reconciliation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import orjson

from wait_registry.demo.fingerprint import Fingerprint
from wait_registry.errors import DataError

Coordinates = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass(frozen=True, slots=True)
class Published:
    """One record the broker acknowledged: where it is, its timestamp (ms) and the fingerprint of its content."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    fingerprint: Fingerprint

    @property
    def coordinates(self) -> Coordinates:
        """Return topic, partition and offset."""
        return (self.topic, self.partition, self.offset)


class ManifestWriter:
    """Appends published records to a file, one write a line, so that a killed load leaves only whole lines behind."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def append(self, published: Published) -> None:
        """Write one record; raise OSError when the disk is full."""
        line = orjson.dumps(asdict(published)) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError("short write to the manifest: is the disk full?")


def read_manifest(path: Path) -> Iterator[Published]:
    """Return the records of a manifest; a last line without its newline is a record that was not written down.

    Raises DataError, naming the line, when the file is something else.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                fields = orjson.loads(line)
                yield Published(**{**fields, "fingerprint": Fingerprint(**fields["fingerprint"])})
            except (orjson.JSONDecodeError, TypeError, KeyError) as error:
                raise DataError(f"{path}, line {number}: not a manifest line ({error})") from error
