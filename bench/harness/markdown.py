"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Return a table.

    Args:
        header: the columns' names.
        rows: the cells; any text, on several lines too.
        right: which columns are set to the right.
    """
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    lines = [[cell(text) for text in header], rule, *([cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Return a text that stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")
