"""The inputs of targets: records as bytes, the golden vectors, and the corpus of what fuzzing found worth keeping."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.golden_vectors import binary, golden_vectors, headers_of
from wait_registry.records import header_names
from wait_registry.records.headers import Headers

CORPUS = Path(__file__).parent / "corpus"
# The corpora of all targets may take a megabyte together.
MAX_FILE_BYTES = 64 * 1024
MAX_RECORD_BYTES = 4_000
# No text in UTF-8 has these bytes.
PART: Final = b"\xfe\xff"
NULL: Final = b"\xff"
# With these words libFuzzer adds and removes headers by itself.
RECORD_WORDS: Final = (
    *(PART, PART + NULL + PART),
    *(name.encode() for key, name in vars(header_names).items() if key.isupper() and isinstance(name, str)),
)


class RecordInput(NamedTuple):
    """A Kafka record that any bytes are: key, value, and in turn the names and values of its headers."""

    key: bytes | None
    value: bytes | None
    headers: Headers

    @classmethod
    def of(cls, data: bytes) -> RecordInput:
        """Read any bytes as a record."""
        parts = [None if part == NULL else part for part in data.split(PART)]
        parts += [b""] * (len(parts) % 2)
        (key, value), *headers = zip(parts[::2], parts[1::2], strict=True)
        return cls(key, value, tuple((_text(name or b""), content) for name, content in headers))

    def encode(self) -> bytes:
        """Return the bytes of a record in which no part holds `PART`."""
        headers = [(name.encode("utf-8", "surrogatepass"), content) for name, content in self.headers]
        pairs = ((self.key, self.value), *headers)
        return PART.join(NULL if part is None else part for pair in pairs for part in pair)


def _text(name: bytes) -> str:
    # What a consumer hands on is text, whatever the bytes were; halves of surrogate pairs may come from Java.
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return name.decode("utf-8", "replace")


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


def golden_records(*files: str) -> Iterator[bytes]:
    """Yield what is read or written in the vectors of some files: records or their headers, those not too long."""
    for file in files:
        for vector in golden_vectors(file):
            for given in (vector.input, vector.expected):
                if isinstance(given, list):
                    record = RecordInput(None, b"", headers_of(given))
                elif isinstance(given, dict) and "value" in given and "headers" in given:
                    record = RecordInput(binary(given.get("key")), binary(given["value"]), headers_of(given["headers"]))
                else:
                    continue
                if len(encoded := record.encode()) <= MAX_RECORD_BYTES:
                    yield encoded
