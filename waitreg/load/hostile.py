"""Records that are allowed and that hardly any consumer expects: one oddity each, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from wait_registry.records import header_names
from waitreg.load.orders import Order

JSON: Final = ("content-type", b"application/json")


def hostile(seed: int, index: int) -> Order:
    """Return the record of this index; the oddities of `ODDITIES` come in turn, so that no load is without one."""
    make = tuple(ODDITIES.values())[index % len(ODDITIES)]
    return make(Random(f"hostile/{seed}/{index}"), index)


def _many_headers(random: Random, index: int) -> Order:
    return Order(b"key", b"{}", [(f"header-{number % 50}", random.randbytes(8)) for number in range(200)])


def _foreign_names(random: Random, index: int) -> Order:
    headers = [("заголовок", "значение".encode()), ("a b\t\n", b"x"), ("\u202e", b"x")]
    return Order("键".encode(), "🚀".encode(), [*headers])


def _traces(random: Random, index: int) -> Order:
    well = f"00-{random.randbytes(16).hex()}-{random.randbytes(8).hex()}-01".encode()
    return Order(
        b"key", b"{}", [("traceparent", well), ("tracestate", b"vendor=1"), ("traceparent", b"00-zero-zero-01")]
    )


def _ours(random: Random, index: int) -> Order:
    """Return headers that look like this system's own and aren't: any client may write any name."""
    return Order(
        b"key",
        b"{}",
        [
            (header_names.WAIT_LINEAGE, b"7"),
            (header_names.ORIGINAL_TOPIC, b"another"),
            (header_names.WAIT_EXPIRATION_UUID, b"not-an-id"),
            (header_names.DLQ_REASON, b"expired"),
        ],
    )


ODDITIES: Final[Mapping[str, Callable[[Random, int], Order]]] = {
    "invalid_utf8": lambda random, index: Order(b"\xc3\x28", b'{"name": "\xff\xfe"}', [("note", b"\xe2\x82")]),
    "nul_bytes": lambda random, index: Order(b"a\x00b", b"\x00", [("note", b"\x00\x00")]),
    "null_value": lambda random, index: Order(b"deleted-%d" % index, None, [("reason", b"gone")]),
    "everything_null": lambda random, index: Order(None, None, [("null", None)]),
    "everything_empty": lambda random, index: Order(b"", b"", [("empty", b""), ("", b"")]),
    "duplicate_headers": lambda random, index: Order(
        b"key", b"{}", [("tag", b"first"), ("Tag", b"other name"), ("tag", b""), ("tag", None), ("tag", b"first")]
    ),
    "many_headers": _many_headers,
    "long_header": lambda random, index: Order(b"key", b"{}", [("n" * 500, random.randbytes(30_000))]),
    "foreign_names": _foreign_names,
    "traces": _traces,
    "ours": _ours,
    "deep_json": lambda random, index: Order(b"key", b"[" * 2000 + b"]" * 2000, [JSON]),
    "half_json": lambda random, index: Order(b"key", b'{"order": 1, "total": NaN, "total": 2', [JSON]),
    "long_key": lambda random, index: Order(random.randbytes(20_000), b"{}", []),
}
