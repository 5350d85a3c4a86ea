"""Reads the golden vectors, in the form that tests/vectors/README.md describes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wait_registry.records.headers import Headers

FOLDER = Path(__file__).parents[1] / "vectors"


class Vector(NamedTuple):
    operation: str
    name: str
    input: Any
    expected: Any


def golden_vectors(file: str) -> Iterator[Vector]:
    """Yield the vectors of a file; those of an operation ``a/b`` once for each direction."""
    content = json.loads((FOLDER / f"{file}.json").read_text("ascii"))
    for operation, cases in content["vectors"].items():
        there, _, back = operation.partition("/")
        for name, *sides in cases:
            left, right = (_expand(side, content.get("parts", {})) for side in sides)
            yield Vector(there, name, left, right)
            if back:
                yield Vector(back, name, right, left)


def _expand(node: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        if "text" in node:
            return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in node["text"])
        whole = _expand(parts[node["like"]], parts) if "like" in node else {}
        whole |= {name: _expand(value, parts) for name, value in node.items() if name not in ("like", "without")}
        return {name: value for name, value in whole.items() if name not in node.get("without", ())}
    if isinstance(node, list):
        return [item for each in node for item in _spread(_expand(each, parts))]
    return node


def _spread(item: Any) -> list[Any]:
    return [[name, value] for name, value in item.items()] if isinstance(item, dict) else [item]


def binary(text: str | None) -> bytes | None:
    """Return the bytes that a vector shows as text."""
    return None if text is None else text.encode("latin-1")


def headers_of(listed: list[list[Any]]) -> Headers:
    return tuple((name, binary(value)) for name, value in listed)
