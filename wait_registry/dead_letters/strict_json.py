"""JSON as it is written: numbers keep their digits, and what programs read in different ways doesn't count as JSON."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class Number(str):
    """A number, by the digits that it is written with."""

    __slots__ = ()


def read_json(data: bytes) -> Any:
    """Read a JSON text.

    Args:
        data: in UTF-8 without a byte order mark, as RFC 8259 has it.

    Returns:
        Dicts, lists, text, `Number`, bool and None.

    Raises:
        ValueError: it is in another encoding, has a name twice in one object, NaN or Infinity, is nested too deep to be
            read, or isn't JSON at all.
    """
    try:
        return json.loads(
            data.decode(),
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("nested too deep") from None


def json_text(value: Any) -> str:
    """Return what `read_json` has read as text in one line."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json_text(name)}: {json_text(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(json_text, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} isn't JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found
