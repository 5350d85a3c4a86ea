"""The rows there are: every `row_N.py` in a folder, by number."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bench.harness.row import Row

ROWS: Final = Path(__file__).parents[1] / "rows"


def row_numbers(folder: Path = ROWS) -> list[int]:
    """Return the numbers of all rows, in order."""
    found = (re.fullmatch(r"row_(\d+)\.py", path.name) for path in folder.glob("row_*.py"))
    return sorted(int(match[1]) for match in found if match)


def row_of(number: int, package: str = "bench.rows") -> Row:
    """Return a row by its number.

    Raises:
        ImportError: its module can't be imported.
        ValueError: it has no ROW of that number.
    """
    module = importlib.import_module(f"{package}.row_{number}")
    row = getattr(module, "ROW", None)
    if not isinstance(row, Row) or row.number != number:
        raise ValueError(f"saw {row!r} in {module.__name__}, expected ROW to be a Row with number {number}")
    return row


def rows_of(numbers: Iterable[int]) -> list[Row]:
    """Return rows by their numbers; raises as `row_of`."""
    return [row_of(number) for number in numbers]
