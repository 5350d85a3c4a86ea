"""Values for people: JSON with line breaks, Avro and Protobuf by the schema that the value names, as JSON.

Only what is shown is decoded. Redrives, downloads and comparisons use the bytes as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from wait_registry.errors import MalformedError, TransientError
from wait_registry.records.headers import Headers
from wait_registry.schemas.registry import PREFIX_BYTES, SchemaRegistry, id_before_json, id_in_header, names_schema

# Larger values are shown as they are.
MOST_BYTES: Final = 1_048_576
SHOWN_CHARACTERS: Final = 65_536
_INDENT: Final = "  "


class Decoded(NamedTuple):
    """A value in its format, or the problem that keeps it from being decoded."""

    format: str
    text: str = ""
    problem: str = ""


def decoded(value: bytes | None, registry: SchemaRegistry | None, headers: Headers = ()) -> Decoded | None:
    """Decode a value; None if it is shown as it is.

    Args:
        value: of a record.
        registry: the schemas; without it, only JSON is decoded.
        headers: of the record.
    """
    if not value or len(value) > MOST_BYTES:
        return None
    text, problem = _json(value), id_in_header(headers)
    if text or problem:
        return Decoded("JSON", _cut(_lines(text))) if text else Decoded("", problem=problem)
    if not names_schema(value):
        return None
    if registry is not None:
        return _by_schema(value, registry)
    return Decoded("", problem=id_before_json(value)) if _json(value[PREFIX_BYTES:]) else None


def _json(value: bytes) -> str:
    """Return a JSON object or array as text; "" for anything else."""
    try:
        text = value.decode()
        parsed = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(parsed, dict | list) else ""


def _cut(pieces: Iterable[str]) -> str:
    """Join pieces to as much text as is shown. Line breaks and schemas may make gigabytes of a megabyte."""
    kept, left = [], SHOWN_CHARACTERS
    for piece in pieces:
        kept.append(piece[:left])
        left -= len(piece)
        if left < 0:
            return "".join((*kept, "\n(more of it isn't shown)"))
    return "".join(kept)


def _by_schema(value: bytes, registry: SchemaRegistry) -> Decoded:
    try:
        schema_format, content = registry.content(value)
    except (MalformedError, TransientError) as error:
        return Decoded("", problem=str(error))
    return Decoded(schema_format, _cut(_FORMAT.iterencode(content)))


def _text(value: Any) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


_FORMAT: Final = json.JSONEncoder(indent=2, ensure_ascii=False, default=_text)


# A string, another scalar, or a sign of JSON that is known to be valid.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+|[{}\[\],:]')


def _lines(text: str) -> Iterator[str]:
    """Yield the pieces of a JSON text, with line breaks between its values; these stay as they are written."""
    depth, opened = 0, False
    for match in _TOKEN.finditer(text):
        token = match[0]
        closes = token in "}]"
        depth -= closes
        yield f"\n{_INDENT * depth}{token}" if closes != opened else token
        opened = token in "{["
        depth += opened
        yield f"\n{_INDENT * depth}" if token == "," else " " if token == ":" else ""
