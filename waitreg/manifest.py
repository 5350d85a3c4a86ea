"""What the load generator published, as JSON lines: the first column of every reconciliation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import orjson

from wait_registry.errors import DataError
from waitreg.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True)
class Published:
    """One record the broker acknowledged: where it is, its timestamp (ms) and the fingerprint of its content."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    fingerprint: Fingerprint

    @property
    def coordinates(self) -> tuple[str, int, int]:
        """Return topic, partition and offset."""
        return (self.topic, self.partition, self.offset)


class ManifestWriter:
    """Appends published records to a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, published: Published) -> None:
        """Write one record."""
        self._file.write(orjson.dumps(asdict(published)) + b"\n")


def read_manifest(path: Path) -> Iterator[Published]:
    """Return the records of a manifest; raise DataError, naming the line, when the file is something else."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                fields = orjson.loads(line)
                yield Published(**{**fields, "fingerprint": Fingerprint(**fields["fingerprint"])})
            except (orjson.JSONDecodeError, TypeError, KeyError) as error:
                raise DataError(f"{path}, line {number}: not a manifest line ({error})") from error
