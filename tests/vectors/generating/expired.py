"""Vectors of expired registrations: a row of them, and what is published for it."""

from __future__ import annotations

import json

from tests.vectors.generating.lineage import LATER, Header, block_at
from tests.vectors.generating.vector import Json, b64, listed, vector
from tests.vectors.generating.wait_record import ID, OTHER_ID, REDELIVERED

NOW_MS = 1795228260500
ROW: Json = {
    "wait_expiration_uuid": ID,
    "original_topic": "orders",
    "original_partition": 3,
    "original_offset": 1234567,
    "original_key": b64(b"customer-17"),
    "original_timestamp_ms": 1795227600123,
    "original_timestamp_type": "create",
    # As Postgres prints a jsonb.
    "original_headers": '[["tenant", "YWNtZQ=="], ["tenant", "b3RoZXI="], ["empty", ""], ["null", null]]',
    "wait_expiration_time": "2026-11-21T02:30:00.123000Z",
    "body": b64(b'{"amount": 5}'),
    "consumer_group": "billing",
    "instance": "host-1",
    "delivery": 2,
    "dead_letter_topic": "orders.dlq",
    "idempotency_key": ID,
    "wait_topic": "waitreg.waits",
    "wait_partition": 1,
    "wait_offset": 99,
    "source_topic": None,
    "source_partition": None,
    "source_offset": None,
}
HEADERS: list[Header] = [("tenant", b"acme"), ("tenant", b"other"), ("empty", b""), ("null", None)]
MESSAGE = "no outcome by 2026-11-21T02:30:00.123Z; registered by instance host-1 of group billing, delivery 2"


def _dlq(message: str = MESSAGE) -> list[Header]:
    return [
        ("DLQ_REASON", b"expired"),
        ("DLQ_ERROR_CLASS", b"WaitExpired"),
        ("DLQ_ERROR_MESSAGE", message.encode()),
        ("DLQ_TIME", b"2026-11-21T02:31:00.500Z"),
    ]


def _letter(headers: list[Header], **changes: Json) -> Json:
    plain = {"topic": "orders.dlq", "key": ROW["original_key"], "value": ROW["body"], "headers": listed(headers)}
    return {**plain, **changes}


def _shapes() -> dict[str, tuple[Json, Json]]:
    """Changes of the row, and its dead letter."""
    plain = [*HEADERS, *block_at(4, *_dlq())]
    imitation: list[Header] = [("a", b""), *block_at(1, *_dlq())]
    odd: list[Header] = [('"\\\t\u20ac\U0001f600', b"\xff\x00"), ("", b"")]
    return {
        "plain": ({}, _letter(plain)),
        "null key, null value": ({"original_key": None, "body": None}, _letter(plain, key=None, value=None)),
        "empty key, empty value": ({"original_key": "", "body": ""}, _letter(plain, key="", value="")),
        "binary key and value": (
            {"original_key": b64(b"\xff\x00"), "body": b64(bytes(range(256)))},
            _letter(plain, key=b64(b"\xff\x00"), value=b64(bytes(range(256)))),
        ),
        "no headers": ({"original_headers": "[]"}, _letter(block_at(0, *_dlq()))),
        "a later delivery": (
            {"idempotency_key": OTHER_ID, **{f"source_{name}": value for name, value in REDELIVERED.items()}},
            _letter([*HEADERS, *block_at(4, *LATER, *_dlq())]),
        ),
        "null headers": ({"original_headers": None}, _letter(block_at(0, *_dlq()))),
        "odd headers": (
            {"original_headers": json.dumps(listed(odd))},
            _letter([*odd, *block_at(2, *_dlq())]),
        ),
        "headers that imitate a dead letter": (
            {"original_headers": json.dumps(listed(imitation))},
            _letter([*imitation, *block_at(len(imitation), *_dlq())]),
        ),
        "headers of the legacy format": (
            {"original_headers": '{"tenant": "acme"}'},
            _letter([("tenant", b"acme"), *block_at(1, *_dlq())]),
        ),
        "microseconds are rounded down": ({"wait_expiration_time": "2026-11-21T02:30:00.123999Z"}, _letter(plain)),
        "no timestamp": (
            {"original_timestamp_ms": -1, "original_timestamp_type": "none"},
            _letter(
                [*HEADERS, *_with(block_at(4, *_dlq()), ORIGINAL_TIMESTAMP=b"-1", ORIGINAL_TIMESTAMP_TYPE=b"none")]
            ),
        ),
    }


def _with(headers: list[Header], **values: bytes | None) -> list[Header]:
    """Return headers with some values replaced, or omitted for None."""
    return [(name, values.get(name, value)) for name, value in headers if values.get(name, b"") is not None]


def _legacy_format() -> tuple[Json, Json]:
    unknown = (
        "original_partition",
        "original_offset",
        "original_key",
        "original_timestamp_ms",
        "original_timestamp_type",
        "original_headers",
        "consumer_group",
        "instance",
        "delivery",
        "dead_letter_topic",
        "idempotency_key",
    )
    message = "no outcome by 2026-11-21T02:30:00.123Z; registered by instance unknown of group unknown, delivery 1"
    said = {"WAIT_LINEAGE", "ORIGINAL_TOPIC", "WAIT_EXPIRATION_UUID", "WAIT_PARTITION", "WAIT_OFFSET"}
    headers = [header for header in block_at(0) if header[0] in said] + _dlq(message)
    return dict.fromkeys(unknown), _letter(headers, topic="orders.late", key=None)


def _long_names() -> dict[str, tuple[Json, Json]]:
    """An instance as long as the error message may be, in characters beyond 16 bits."""
    before, after = MESSAGE.split("host-1")
    room = 2048 - len(before) - len(after)
    cases = {}
    for name, count in (("the longest message", room), ("a message too long", room + 1)):
        instance = "\U0001f600" * count
        message = before + instance + after
        shown = message if len(message) <= 2048 else message[:2047] + "\u2026"
        block = _with(block_at(4, *_dlq(shown)), WAIT_INSTANCE=instance.encode())
        cases[name] = ({"instance": instance}, _letter([*HEADERS, *block]))
    return cases


def _refused() -> dict[str, Json]:
    return {
        "headers that aren't JSON": {"original_headers": "tenant=acme"},
        "headers that are a text": {"original_headers": '"x"'},
        "a value that isn't base64": {"original_headers": '[["a", "!"]]'},
        "no topic can be made": {"dead_letter_topic": None, "original_topic": "orders/eu"},
    }


def expired_vectors() -> list[Json]:
    shapes = {**_shapes(), "legacy format": _legacy_format(), **_long_names()}
    given = {"template": "{topic}.late", "now_ms": NOW_MS}
    tombstone = {
        "topic": "waitreg.waits",
        "partition": 1,
        "key": b64(ID.encode()),
        "value": None,
        "headers": listed([("WAIT_OUTCOME", b"expired")]),
    }
    return [
        *(
            vector(name, "record", {**given, "row": {**ROW, **changes}}, expected)
            for name, (changes, expected) in shapes.items()
        ),
        *(
            vector(name, "record", {**given, "row": {**ROW, **changes}}, "error")
            for name, changes in _refused().items()
        ),
        vector("plain", "tombstone", {**given, "row": ROW}, tombstone),
    ]
