"""ORIGINAL_HEADERS: any bytes are headers or refused, and what was read is written back."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

from tests.fuzz.target import Target
from tests.fuzz.vectors import inputs
from wait_registry.errors import DataError
from wait_registry.records.headers import Headers, decode_headers_json, encode_headers_json

MAX_MESSAGE = 500


def _read(data: bytes) -> Headers | None:
    try:
        return decode_headers_json(data)
    except DataError as error:
        assert len(str(error)) < MAX_MESSAGE, "a refusal that quotes its input"
        return None


def _check(data: bytes) -> None:
    headers = _read(data)
    if headers is not None:
        encoded = encode_headers_json(headers)
        assert decode_headers_json(encoded) == headers, "not as it was written"
        assert all("\0" not in name for name in _strings(encoded)), "what jsonb doesn't hold"


def _strings(encoded: bytes) -> list[str]:
    return [text for pair in json.loads(encoded) for text in pair if isinstance(text, str)]


def _seeds() -> Iterator[bytes]:
    for given in inputs("headers_json", "decode"):
        yield b64decode(given)
    for text in inputs("headers_json", "encode"):
        yield text.encode()
    yield b"[" * 1100 + b"]" * 1100
    yield b'{"a":' * 200 + b"1" + b"}" * 200
    yield b'{"a":"1","a":null,"b":"\\u00e9","a":"2"}'
    yield b'[["\\ud800","AA=="]]'
    yield b'[[{"base64":"7aCA"},"AB=="]]'
    yield b"[1e400,1" + b"0" * 400 + b"]"


TARGET = Target(
    "headers_json",
    _read,
    _check,
    _seeds,
    (b'[["', b'",null]', b'{"base64":"', b"AA==", b"\\u0000", b"\\ud83d\\ude00", b"1e999", b"\xef\xbb\xbf", b"null"),
)
