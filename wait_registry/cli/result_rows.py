"""Rows of a query as lines: an aligned table, JSON objects, or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

Form = Literal["table", "json", "csv"]
_MAX_CELL = 120


def render_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], form: Form) -> Iterator[str]:
    """Yield the lines that show these rows.

    ``table`` reads all rows first, for the widths, and cuts long cells; ``json`` and ``csv`` go row by row, uncut.
    Times are ISO 8601, bytes ``\\x`` and hexadecimal digits as psql shows them; an interval is seconds in JSON, else
    days and hh:mm:ss.
    """
    if form == "json":
        for row in rows:
            yield json.dumps(dict(zip(columns, row, strict=True)), default=_json, ensure_ascii=False)
    elif form == "csv":
        yield _csv_line(columns)
        for row in rows:
            yield _csv_line([_text(cell) for cell in row])
    else:
        yield from _table(columns, [[_cut(_text(cell)) for cell in row] for row in rows])


def _table(columns: Sequence[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(columns)]
    yield "  ".join(f"{name:<{width}}" for name, width in zip(columns, widths, strict=True)).rstrip()
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"({len(rows)} row{'' if len(rows) == 1 else 's'})"


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


def _csv_line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    # The writer quotes a cell for the characters of its line end: both, then, and cut off again.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n")
