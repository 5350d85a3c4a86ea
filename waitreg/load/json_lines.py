"""Files of JSON lines, one write per line: a writer that is killed leaves only whole lines behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from wait_registry.errors import DataError

T = TypeVar("T")


class JsonLines:
    """Appends dataclasses to a file."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; raise OSError when that is impossible."""
        self._path = path
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; may be called again."""
        self._file.close()

    def append(self, content: Any) -> None:
        """Write one dataclass; raise OSError when the disk is full."""
        line = orjson.dumps(content) + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(f"short write to {self._path}: is the disk full?")


def read_json_lines(path: Path, expected: str, decode: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    """Return what each line holds; a last line without its newline was never finished and is skipped.

    Raises:
        DataError: a line is no ``expected`` line; the message has its number.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(orjson.loads(line))
            except (orjson.JSONDecodeError, TypeError, KeyError) as error:
                raise DataError(f"{path}, line {number}: no line of a {expected} ({error})") from error
