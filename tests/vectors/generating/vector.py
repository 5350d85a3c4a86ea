"""One golden vector, and the form of binary data in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, TypeAlias

Json: TypeAlias = Any
Pairs: TypeAlias = Iterable[tuple[str, bytes | None]]


def vector(name: str, operation: str, given: Json, expected: Json) -> Json:
    return {"name": name, "operation": operation, "input": given, "expected": expected}


def b64(data: bytes | None) -> str | None:
    """Return binary data in the form of a vector."""
    return None if data is None else base64.b64encode(data).decode()


def listed(headers: Pairs) -> list[list[str | None]]:
    """Return headers in the form of a vector."""
    return [[name, b64(value)] for name, value in headers]
