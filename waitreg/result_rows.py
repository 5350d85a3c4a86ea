"""Rows of a query as lines: a table, one field per line, or JSON objects."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from rich.cells import cell_len, set_cell_size

from wait_registry.display import safe

WIDTH: Final = 120
_MAX_CELL: Final = 120


def render_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], as_json: bool = False) -> Iterator[str]:
    """Yield the lines that show rows.

    Args:
        columns: the names of the columns.
        rows: read at once for a table, which cuts long cells and, if it is wider than `WIDTH` and the terminal, shows
            one field per line instead; read row by row for JSON, which cuts nothing.
        as_json: one JSON object per row instead of a table. Times are ISO 8601, bytes ``\\x`` and hexadecimal
            digits, as in psql. An interval is seconds in JSON, else days and hh:mm:ss.
    """
    if as_json:
        for row in rows:
            yield json.dumps(dict(zip(columns, row, strict=True)), default=_json, ensure_ascii=False)
    else:
        # What a producer wrote must not reach the terminal as a command.
        texts = [[safe(_text(cell), "\r\n\t") for cell in row] for row in rows]
        yield from _table(columns, texts)
        yield f"({len(texts)} row{'' if len(texts) == 1 else 's'})"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[_cut(text) for text in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > max(WIDTH, shutil.get_terminal_size().columns):
        yield from _fields(columns, rows)
        return
    for row in (columns, ["-" * width for width in widths], *cells):
        yield "  ".join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _fields(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(map(cell_len, columns))
    for number, row in enumerate(rows, start=1):
        yield f"-- row {number}"
        for name, text in zip(columns, row, strict=True):
            first, *more = text.replace("\r", "").replace("\t", "    ").split("\n")
            yield f"{set_cell_size(name, width)}  {first}".rstrip()
            yield from (f"{'':<{width}}  {line}".rstrip() for line in more)


def _json(cell: object) -> object:
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, Decimal):
        return float(cell)
    return _text(cell)


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="milliseconds")
    if isinstance(cell, timedelta):
        return _interval(cell)
    if isinstance(cell, bytes | memoryview):
        return f"\\x{bytes(cell).hex()}"
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False)
    return str(cell)


def _interval(span: timedelta) -> str:
    seconds = round(abs(span).total_seconds())
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    shown = f"{days} day{'' if days == 1 else 's'} {clock}" if days else clock
    return f"-{shown}" if span < timedelta(0) and seconds else shown


def _cut(text: str) -> str:
    line = text.replace("\r", "").replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= _MAX_CELL else f"{line[: _MAX_CELL - 1]}…"
