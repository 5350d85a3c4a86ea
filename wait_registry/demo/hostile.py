"""Records that are allowed and that hardly anybody expects: one oddity each, in turn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from wait_registry.demo.orders import Order
from wait_registry.records import names

Headers = list[tuple[str, bytes | None]]
MANY_HEADERS: Final = 200
LONG_HEADER_BYTES: Final = 30_000


def hostile(seed: int, index: int) -> Order:
    """Return the record of this index; the oddities of `ODDITIES` come in turn, so that no load is without one."""
    return ODDITIES[index % len(ODDITIES)](Random(f"hostile/{seed}/{index}"), index)


def _invalid_utf8(random: Random, index: int) -> Order:
    return Order(b"\xc3\x28", b'{"name": "\xff\xfe"}', [("note", b"\xe2\x82")])


def _nul_bytes(random: Random, index: int) -> Order:
    return Order(b"a\x00b", b"\x00", [("note", b"\x00\x00")])


def _null_value(random: Random, index: int) -> Order:
    return Order(b"deleted-%d" % index, None, [("reason", b"gone")])


def _everything_null(random: Random, index: int) -> Order:
    return Order(None, None, [("null", None)])


def _everything_empty(random: Random, index: int) -> Order:
    return Order(b"", b"", [("empty", b""), ("", b"")])


def _duplicate_headers(random: Random, index: int) -> Order:
    twice: Headers = [("tag", b"first"), ("Tag", b"other name"), ("tag", b""), ("tag", None), ("tag", b"first")]
    return Order(b"key", b"{}", twice)


def _many_headers(random: Random, index: int) -> Order:
    return Order(b"key", b"{}", [(f"header-{number % 50}", random.randbytes(8)) for number in range(MANY_HEADERS)])


def _long_header(random: Random, index: int) -> Order:
    return Order(b"key", b"{}", [("n" * 500, random.randbytes(LONG_HEADER_BYTES))])


def _foreign_names(random: Random, index: int) -> Order:
    return Order(
        "键".encode(), "🚀".encode(), [("заголовок", "значение".encode()), ("a b\t\n", b"x"), ("\u202e", b"x")]
    )


def _traces(random: Random, index: int) -> Order:
    well = f"00-{random.randbytes(16).hex()}-{random.randbytes(8).hex()}-01".encode()
    return Order(
        b"key", b"{}", [("traceparent", well), ("tracestate", b"vendor=1"), ("traceparent", b"00-zero-zero-01")]
    )


def _ours(random: Random, index: int) -> Order:
    """Headers that look like this system's own and aren't: anybody may write any name."""
    lies: Headers = [
        (names.WAIT_LINEAGE, b"7"),
        (names.ORIGINAL_TOPIC, b"another"),
        (names.WAIT_EXPIRATION_UUID, b"not-an-id"),
        (names.DLQ_REASON, b"expired"),
    ]
    return Order(b"key", b"{}", lies)


def _deep_json(random: Random, index: int) -> Order:
    return Order(b"key", b"[" * 2000 + b"]" * 2000, [("content-type", b"application/json")])


def _half_json(random: Random, index: int) -> Order:
    return Order(b"key", b'{"order": 1, "total": NaN, "total": 2', [("content-type", b"application/json")])


def _long_key(random: Random, index: int) -> Order:
    return Order(random.randbytes(20_000), b"{}", [])


ODDITIES: Final[tuple[Callable[[Random, int], Order], ...]] = (
    _invalid_utf8,
    _nul_bytes,
    _null_value,
    _everything_null,
    _everything_empty,
    _duplicate_headers,
    _many_headers,
    _long_header,
    _foreign_names,
    _traces,
    _ours,
    _deep_json,
    _half_json,
    _long_key,
)
