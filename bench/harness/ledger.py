"""The ledger: everything that was measured, one JSON object a line, appended and never rewritten."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.measurement import Entry, as_json, from_json


@dataclass(frozen=True, slots=True)
class Contents:
    """What a ledger holds.

    Attributes:
        entries: in the order of measuring.
        complaints: a sentence for every line that couldn't be read; its measurement counts as never made.
    """

    entries: Sequence[Entry]
    complaints: Sequence[str]


class Ledger:
    """A file of measurements."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Entry) -> None:
        """Add a measurement; it has reached the disk when this returns."""
        line = json.dumps(as_json(entry), ensure_ascii=False, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if _is_torn(file.tell(), file.fileno()):
                file.write(b"\n")  # what was cut off stays a line of its own instead of spoiling this one
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> Contents:
        """Return everything that can be read; a missing file is an empty ledger."""
        if not self.path.exists():
            return Contents((), ())
        entries: list[Entry] = []
        complaints: list[str] = []
        lines = self.path.read_bytes().splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                entries.append(from_json(json.loads(line)))
            except ValueError:
                torn = "torn: its writer was cut off" if number == len(lines) else "not a measurement"
                complaints.append(f"{self.path.name}, line {number} is {torn}. It is left out")
        return Contents(entries, complaints)


def _is_torn(size: int, descriptor: int) -> bool:
    """Return whether the file ends within a line."""
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
