"""Inputs of the golden vectors, to begin with."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.record_bytes import Headers, RecordInput

FOLDER = Path(__file__).parents[1] / "vectors"
MAX_KEY, MAX_VALUE = 255, 4_000


def inputs(file: str, *operations: str) -> Iterator[Any]:
    """Yield the inputs of a file's vectors of some operations, and what is expected of an `encode`."""
    for vector in json.loads((FOLDER / f"{file}.json").read_text("ascii"))["vectors"]:
        if vector["operation"] in operations:
            yield vector["expected"] if vector["operation"] == "encode" else vector["input"]


def records(file: str, *operations: str) -> Iterator[bytes]:
    """Yield them as records, where they are records or headers of some."""
    for given in inputs(file, *operations):
        if isinstance(given, list):
            yield from _encoded(None, b"", given)
        elif isinstance(given, dict) and "headers" in given:
            yield from _encoded(_binary(given.get("key")), _binary(given.get("value")), given["headers"])


def _encoded(key: bytes | None, value: bytes | None, headers: list[Any]) -> Iterator[bytes]:
    read: Headers = tuple((name, _binary(content)) for name, content in headers)
    names = [key or b"", *(name.encode("utf-8", "surrogatepass") for name, _ in read)]
    values = [value or b"", *(content or b"" for _, content in read)]
    if max(map(len, names)) <= MAX_KEY and max(map(len, values)) <= MAX_VALUE:
        yield RecordInput(key, value, read).encode()


def _binary(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
