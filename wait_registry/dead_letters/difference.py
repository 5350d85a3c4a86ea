"""What differs between two records: key, headers, value; a JSON value by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from wait_registry.dead_letters.strict_json import json_text, read_json
from wait_registry.display import MOST_BYTES, is_text, lines_of, safe
from wait_registry.records.headers import Headers

_AROUND: Final = 8
# More lines take too long to compare for a page, and more fields are too many to read.
_MOST_LINES, _MOST_FIELDS = 200, 1_000
# Parsed JSON takes many times its size.
_MOST_JSON: Final = 1_048_576
_MISSING: Final = object()
# The path around it and its own name or number, so that long names aren't copied for each of their values.
_Path: TypeAlias = tuple[Any, ...]


class Content(NamedTuple):
    """What a producer wrote: key, headers and value."""

    key: bytes | None
    headers: Headers
    value: bytes | None


def difference(left: Content, right: Content) -> Iterator[str]:
    """Yield the lines that show how two records differ, byte for byte: ``-`` is the left side, ``+`` the right one.

    Text is shown line by line, and other values as hexadecimal digits. JSON is compared field by field as well. What is
    too long to be shown whole says so. There is a line exactly if the records differ.
    """
    yield from _values("key", left.key, right.key)
    if left.headers != right.headers:
        yield f"headers: {len(left.headers)}, {len(right.headers)}"
        before, after = ([_header(one) for one in side] for side in (left.headers, right.headers))
        yield from _changed_lines(before, after)
    if left.value == right.value:
        return
    yield from islice(_values("value", left.value, right.value), 1)
    both = left.value or b"", right.value or b""
    # Text and other bytes are compared as bytes.
    before, after = (list(lines_of(side, as_text=all(map(is_text, both)))) for side in both)
    lines = list(_changed_lines(before, after))
    yield from lines or islice(_values("value", left.value, right.value), 1, None)
    if max(map(len, both)) > MOST_BYTES:
        yield f"Differences beyond {MOST_BYTES} bytes aren't shown: compare SHA-256."
    yield from _fields(left.value, right.value)


def _fields(left: bytes | None, right: bytes | None) -> Iterator[str]:
    if max(len(left or b""), len(right or b"")) > _MOST_JSON:
        yield f"Values of more than {_MOST_JSON} bytes aren't compared field by field."
        return
    parsed = _json_of(left), _json_of(right)
    if _MISSING in parsed:
        if parsed[0] is not _MISSING and right is not None:
            yield "The value was JSON and isn't any more."
        return
    yield from _different_fields(*parsed)


def _different_fields(left: Any, right: Any) -> Iterator[str]:
    left_over = MOST_BYTES
    try:
        for number, (path, before, after) in enumerate(_paths((), left, right)):
            if number == _MOST_FIELDS or left_over < 0:
                yield f"more than {number} fields differ"
                return
            line = f"{_path(path)}: {_json(before)} -> {_json(after)}"
            left_over -= len(line)
            yield line
    except RecursionError:
        yield "The JSON is nested too deep to compare all of its fields."


def _changed_lines(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the lines that differ, with the numbers of those that they replace."""
    start = _common(before, after)
    before, after = before[start:], after[start:]
    same = _common(before[::-1], after[::-1])
    before, after = before[: len(before) - same], after[: len(after) - same]
    if max(len(before), len(after)) > _MOST_LINES:
        yield f"  more than {_MOST_LINES} lines differ, of which this is the first; compare SHA-256:"
        before, after = before[:1], after[:1]
    for what, first, last, to_first, to_last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what != "equal":
            yield f"  line {start + first + 1}:"
            yield from (f"  - {line}" for line in before[first:last])
            yield from (f"  + {line}" for line in after[to_first:to_last])


def _common(left: Sequence[object], right: Sequence[object]) -> int:
    """Return how many items both sides begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _values(name: str, left: bytes | None, right: bytes | None) -> Iterator[str]:
    if left == right:
        return
    if left is None or right is None:
        yield f"{name}: {_size(left)}, {_size(right)}"
        return
    first = _common(left, right)
    yield f"{name}: {_size(left)}, {_size(right)}; the first difference is at byte {first}"
    for side, data in (("-", left), ("+", right)):
        part = data[max(0, first - _AROUND) : first + _AROUND]
        yield f"  {side} {safe(part.decode()) if is_text(part) else next(lines_of(part), '')}"


def _header(header: tuple[str, bytes | None]) -> str:
    """Return a header so that no other one has the same text."""
    name, value = header
    if value is None:
        return f"{safe(name)}: null"
    return f'{safe(name)} = "{safe(value.decode())}"' if is_text(value) else f"{safe(name)}: 0x{value.hex()}"


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"


def _json_of(data: bytes | None) -> Any:
    try:
        return read_json(data or b"") if len(data or b"") <= _MOST_JSON else _MISSING
    except ValueError:
        return _MISSING


def _path(path: _Path) -> str:
    parts: list[str] = []
    while path:
        path, part = path
        parts.append(part)
    return safe("".join(("$", *reversed(parts))))


def _paths(path: _Path, left: Any, right: Any) -> Iterator[tuple[_Path, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            yield from _paths((path, f".{name}"), left.get(name, _MISSING), right.get(name, _MISSING))
    elif isinstance(left, list) and isinstance(right, list):
        for number in range(max(len(left), len(right))):
            sides = (side[number] if number < len(side) else _MISSING for side in (left, right))
            yield from _paths((path, f"[{number}]"), *sides)
    elif type(left) is not type(right) or left != right:
        yield path, left, right


def _json(value: Any) -> str:
    return "none" if value is _MISSING else safe(json_text(value))
