"""The inputs that a target begins with: the golden vectors, and the corpus of what fuzzing found worth keeping."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.record_bytes import MAX_NAME_BYTES, RecordInput
from tests.support.golden_vectors import binary, golden_vectors, headers_of

CORPUS = Path(__file__).parent / "corpus"
# The corpora of all targets may take a megabyte together.
MAX_FILE_BYTES = 64 * 1024
MAX_VALUE_BYTES = 4_000


def corpus_of(name: str) -> list[bytes]:
    """Return a target's kept inputs: a text file per target, an input per line in base64, smallest first."""
    path = CORPUS / f"{name}.txt"
    return [b64decode(line) for line in path.read_text("ascii").splitlines()] if path.exists() else []


def keep(name: str, inputs: Iterable[bytes]) -> int:
    """Write a target's inputs, the smallest of them as far as there is room; returns how many."""
    lines: list[str] = []
    room = MAX_FILE_BYTES
    for one in sorted(set(inputs), key=lambda data: (len(data), data)):
        line = b64encode(one).decode()
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    (CORPUS / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")
    return len(lines)


def vectors(file: str, *operations: str) -> Iterator[Any]:
    """Yield the inputs of a file's vectors of some operations, and what is expected of an `encode`."""
    for vector in golden_vectors(file):
        if vector.operation in operations:
            yield vector.expected if vector.operation == "encode" else vector.input


def records(file: str, *operations: str) -> Iterator[bytes]:
    """Yield those vectors that are records, or headers of records, and not too long."""
    for given in vectors(file, *operations):
        if isinstance(given, list):
            given = {"value": "", "headers": given}
        if not isinstance(given, dict) or "headers" not in given:
            continue
        key, value = (binary(given.get(part)) for part in ("key", "value"))
        record = RecordInput(key, value, headers_of(given["headers"]))
        names = [key or b"", *(name.encode("utf-8", "surrogatepass") for name, _ in record.headers)]
        values = [value or b"", *(content or b"" for _, content in record.headers)]
        if max(map(len, names)) <= MAX_NAME_BYTES and max(map(len, values)) <= MAX_VALUE_BYTES:
            yield record.encode()
