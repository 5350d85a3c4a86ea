"""The JSON of original headers, by the standard library's parser and a regular expression for base64."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from typing import Any

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NUMBER = object()


class Refused(Exception):
    """It is nothing that a reader of the format may take."""


class Undecided(Exception):
    """Nested so deep that this parser says nothing about it."""


def reread_headers(data: bytes) -> list[tuple[str, bytes | None]]:
    """Return the headers.

    :raises Refused: they aren't any.
    :raises Undecided: it can't be told here.
    """
    try:
        document = json.loads(data.decode(), parse_constant=_constant, parse_int=_number, parse_float=_number)
    except RecursionError:
        raise Undecided from None
    except ValueError:
        raise Refused from None
    _require_whole_characters(document)
    if isinstance(document, dict):
        return [(name, _older(value)) for name, value in document.items()]
    if isinstance(document, list):
        return [_pair(item) for item in document]
    raise Refused


def _constant(word: str) -> Any:
    raise Refused


def _number(digits: str) -> object:
    if math.isinf(float(digits)):
        raise Refused
    return _NUMBER


def _require_whole_characters(document: Any) -> None:
    """Refuse halves of surrogate pairs, which an escape can name and no UTF-8 can hold."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and any(0xD800 <= ord(character) < 0xE000 for character in value):
            raise Refused


def _older(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    raise Refused


def _pair(item: Any) -> tuple[str, bytes | None]:
    if not isinstance(item, list) or len(item) != 2:
        raise Refused
    name, value = item
    if isinstance(name, dict) and list(name) == ["base64"]:
        try:
            name = _binary(name["base64"]).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise Refused from None
    if not isinstance(name, str):
        raise Refused
    return name, None if value is None else _binary(value)


def _binary(text: Any) -> bytes:
    if not isinstance(text, str) or not _BASE64.fullmatch(text):
        raise Refused
    return b64decode(text)
