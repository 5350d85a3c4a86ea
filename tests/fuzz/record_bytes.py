"""A Kafka record made of any bytes, and back: what a fuzzer changes in the bytes are headers, names and values.

One byte says what is null; then key, value and headers. A length is two bytes, a header's name either one byte that
names one of `NAMES`, or a byte beyond them, a length of one byte and the name itself. Bytes that end early give a
record that ends early, so any bytes are a record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from random import Random
from typing import Final

from wait_registry.records import header_names

Header = tuple[str, bytes | None]
Headers = tuple[Header, ...]

NAMES: Final = sorted(
    {value for name, value in vars(header_names).items() if name.isupper() and isinstance(value, str)}
)
ODD_NAMES: Final = ("", "a", "\0", "\ud800", "name", "é")
MAX_NAME_BYTES: Final = 255
_MAX_VALUE_BYTES: Final = 60_000
_MUTATED_BYTES: Final = 2_000
_FREE_NAME: Final = 255
_NULL: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class RecordInput:
    key: bytes | None
    value: bytes | None
    headers: Headers

    @classmethod
    def of(cls, data: bytes) -> RecordInput:
        """Read any bytes as a record."""
        stream = BytesIO(data)
        nulls = _byte(stream)
        key, value = stream.read(_byte(stream)), _sized(stream)
        headers = []
        while stream.tell() < len(data):
            headers.append((_name(stream), _sized(stream)))
        return cls(None if nulls & 1 else key, None if nulls & 2 else value or b"", tuple(headers))

    def encode(self) -> bytes:
        """Return bytes that are read as this record, its parts cut to what their lengths can say."""
        key, value = (self.key or b"")[:MAX_NAME_BYTES], (self.value or b"")[:_MAX_VALUE_BYTES]
        parts = [bytes([(self.key is None) | (self.value is None) << 1, len(key)]), key, _length(value), value]
        for name, content in self.headers:
            if name in NAMES:
                parts.append(bytes([NAMES.index(name)]))
            else:
                encoded = name.encode("utf-8", "surrogatepass")[:MAX_NAME_BYTES]
                parts.append(bytes([_FREE_NAME, len(encoded)]) + encoded)
            cut = content and content[:_MAX_VALUE_BYTES]
            parts.append(_NULL.to_bytes(2, "big") if cut is None else _length(cut) + cut)
        return b"".join(parts)


def mutated(data: bytes, random: Random, words: Sequence[bytes], mutate: Callable[[bytes, int], bytes]) -> bytes:
    """Return the bytes of a record that differs in one place from the record of ``data``.

    Args:
        data: the bytes of a record.
        random: chooses the place.
        words: values worth putting in.
        mutate: changes bytes at random, up to a size.
    """
    record = RecordInput.of(data)
    key, value, headers = record.key, record.value, list(record.headers)
    place = random.randrange(len(headers) + 1)
    known = headers[place] if place < len(headers) else None
    new = random.choice([*NAMES, *ODD_NAMES]), random.choice([None, b"", *words, b"%d" % random.randrange(12)])
    choice = random.randrange(8)
    if choice == 0:
        key = random.choice([None, b"", *words, mutate(key or b"", MAX_NAME_BYTES)])
    elif choice == 1:
        value = random.choice([None, b"", mutate(value or b"", _MUTATED_BYTES)])
    elif choice == 2 or known is None:
        headers.insert(place, new)
    elif choice == 3:
        headers.insert(random.randrange(len(headers) + 1), known)
    else:
        name, old = known
        changes: list[list[Header]] = [
            [],
            [(new[0], old)],
            [(name, new[1])],
            [(name, mutate(old or b"", _MUTATED_BYTES))],
        ]
        headers[place : place + 1] = changes[choice - 4]
    return RecordInput(key, value, tuple(headers)).encode()


def _byte(stream: BytesIO) -> int:
    return (stream.read(1) or b"\0")[0]


def _sized(stream: BytesIO) -> bytes | None:
    size = int.from_bytes(stream.read(2), "big")
    return None if size == _NULL else stream.read(size)


def _name(stream: BytesIO) -> str:
    choice = _byte(stream)
    if choice < len(NAMES):
        return NAMES[choice]
    # What a consumer hands on is text, whatever the bytes were; halves of surrogate pairs may come from Java.
    encoded = stream.read(_byte(stream))
    try:
        return encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return encoded.decode("utf-8", "replace")


def _length(content: bytes) -> bytes:
    return len(content).to_bytes(2, "big")
