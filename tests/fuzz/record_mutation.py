"""Changes to a record that mean something: a header more or less, another name, another value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from tests.fuzz.record_bytes import NAMES, Headers, RecordInput

MAX_PART = 2_000
ODD_NAMES = ("", "a", "\0", "\ud800", "name", "é")


def mutated_record(data: bytes, random: Random, words: Sequence[bytes], mutate: Callable[[bytes, int], bytes]) -> bytes:
    """Return the bytes of a record that differs from the one of ``data`` in one place.

    :param words: values worth putting in.
    :param mutate: changes bytes at random, up to a size.
    """
    record = RecordInput.of(data)
    headers = list(record.headers)
    place = random.randrange(len(headers) + 1)
    choice = random.randrange(8)
    if choice == 0:
        record = replace(record, key=random.choice([None, b"", *words, mutate(record.key or b"", 255)]))
    elif choice == 1:
        record = replace(record, value=random.choice([None, b"", mutate(record.value or b"", MAX_PART)]))
    elif choice == 2 or place == len(headers):
        headers.insert(place, (_name(random), _value(random, words)))
    elif choice == 3:
        del headers[place]
    elif choice == 4:
        headers.insert(random.randrange(len(headers) + 1), headers[place])
    elif choice == 5:
        headers[place] = (_name(random), headers[place][1])
    elif choice == 6:
        headers[place] = (headers[place][0], _value(random, words))
    else:
        headers[place] = (headers[place][0], mutate(headers[place][1] or b"", MAX_PART))
    return _cut(replace(record, headers=tuple(headers))).encode()


def _name(random: Random) -> str:
    return random.choice([*NAMES, *ODD_NAMES])


def _value(random: Random, words: Sequence[bytes]) -> bytes | None:
    return random.choice([None, b"", *words, str(random.randrange(12)).encode()])


def _cut(record: RecordInput) -> RecordInput:
    headers: Headers = tuple((name, None if value is None else value[:60_000]) for name, value in record.headers)
    return RecordInput(
        None if record.key is None else record.key[:255],
        None if record.value is None else record.value[:60_000],
        tuple(
            (name.encode("utf-8", "surrogatepass")[:255].decode("utf-8", "ignore"), value)
            if len(name) > 60
            else (name, value)
            for name, value in headers
        ),
    )
