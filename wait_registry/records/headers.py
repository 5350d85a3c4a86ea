"""Record headers, and the JSON of the original headers in a wait record."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Final, TypeAlias

import orjson

from wait_registry.errors import DataError

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

MAX_JSON_BYTES: Final = 16 * 1024 * 1024
NO_HEADERS_JSON: Final = b"[]"

_NUL_IN_JSON: Final = b"\\u0000"


def encode_headers_json(headers: Headers) -> bytes:
    """Encode headers as a JSON list of ``[name, base64 or null]``, in order, duplicates kept.

    A name that Postgres JSON can't hold (NUL, lone surrogates) becomes ``{"base64": ...}`` of its UTF-8 bytes.

    Returns:
        Compact UTF-8 JSON.
    """
    if not headers:
        return NO_HEADERS_JSON
    try:
        encoded = orjson.dumps(
            [
                (name, None if value is None else b2a_base64(value, newline=False).decode("ascii"))
                for name, value in headers
            ]
        )
    except orjson.JSONEncodeError:  # a lone surrogate: not UTF-8, so not JSON either
        return _encode_with_odd_names(headers)
    return _encode_with_odd_names(headers) if _NUL_IN_JSON in encoded else encoded


def readable_headers_json(headers: Headers) -> bytes:
    """Encode headers as `encode_headers_json` does, within the readers' limit.

    Brokers limit the compressed size, so a record may be far larger than its topic's max.message.bytes.

    Raises:
        DataError: it is larger than readers accept.
    """
    encoded = encode_headers_json(headers)
    if len(encoded) > MAX_JSON_BYTES:
        raise _too_large(len(encoded), MAX_JSON_BYTES)
    return encoded


def decode_headers_json(data: bytes, max_bytes: int = MAX_JSON_BYTES) -> Headers:
    """Decode headers from JSON: a list of ``[name, base64 or null]``, or the legacy format's object of strings.

    Args:
        data: the JSON text. Parsing it takes up to sixty times its size in memory, so it is limited.
        max_bytes: the limit, bytes; 16 MiB for records of other writers.

    Raises:
        DataError: it is neither, or too large; quarantine the record. The message never holds the headers.
    """
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # Not chained, since the error keeps the whole document.
        raise DataError(f"headers JSON: saw invalid JSON of {len(data)} bytes ({error.msg})") from None
    if isinstance(document, dict):
        return tuple((name, _legacy_value(index, value)) for index, (name, value) in enumerate(document.items()))
    if isinstance(document, list):
        return tuple(_pair(index, item) for index, item in enumerate(document))
    raise DataError(f"headers JSON: saw {_kind(document)}, expected a list of pairs or an object of strings")


def require_sendable_names(headers: Iterable[tuple[str, bytes | None]]) -> None:
    """Refuse header names that librdkafka's Python client can't send as they are.

    It cuts a name at NUL, and a lone surrogate ends the process (a segmentation fault in 2.16). No record that this
    client consumed has such a name; a wait record written by another client may.

    Raises:
        DataError: a name holds NUL or a lone surrogate; the record is unsendable.
    """
    for index, (name, _) in enumerate(headers):
        if _is_odd(name):
            raise DataError(f"header {index}: the name holds NUL or a lone surrogate, which this client can't send")


def _too_large(size: int, limit: int) -> DataError:
    return DataError(f"headers JSON: saw {size} bytes, expected at most {limit}")


def _encode_with_odd_names(headers: Headers) -> bytes:
    return orjson.dumps(
        [
            (_odd_name(name) if _is_odd(name) else name, None if value is None else _base64(value))
            for name, value in headers
        ]
    )


def _is_odd(name: str) -> bool:
    return "\0" in name or (not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name))


def _odd_name(name: str) -> dict[str, str]:
    return {"base64": _base64(name.encode("utf-8", "surrogatepass"))}


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _pair(index: int, item: object) -> tuple[str, bytes | None]:
    if not isinstance(item, list) or len(item) != 2:
        size = f" of {len(item)}" if isinstance(item, list) else ""
        raise DataError(f"headers JSON, item {index}: saw {_kind(item)}{size}, expected a list of 2")
    name, value = item
    return _name(index, name), None if value is None else _bytes(index, "value", value)


def _name(index: int, name: object) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, dict) and name.keys() == {"base64"}:
        try:
            return _bytes(index, "name", name["base64"]).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise DataError(f"headers JSON, item {index}: the name's base64 doesn't hold UTF-8") from None
    raise DataError(f'headers JSON, item {index}: the name is {_kind(name)}, expected a string or {{"base64": string}}')


def _bytes(index: int, part: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise DataError(f"headers JSON, item {index}: the {part} is {_kind(text)}, expected base64 text")
    try:
        data = a2b_base64(text, strict_mode=True)
    except ValueError:
        data = None
    # Even strict mode accepts padding after whole groups.
    if data is None or len(text) != (len(data) + 2) // 3 * 4:
        raise DataError(f"headers JSON, item {index}: the {part} isn't base64 (standard alphabet, padded)")
    return data


def _legacy_value(index: int, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    raise DataError(f"headers JSON, member {index}: saw {_kind(value)}, expected a string")


def _kind(value: object) -> str:
    """Name a JSON value's type without showing the value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
