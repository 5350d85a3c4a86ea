"""Vectors of the wait record in both dialects."""

from __future__ import annotations

import json

from tests.vectors.generating.vector import Json, b64, listed, vector

ID = "019fc448-d29b-8abc-9def-0123456789ab"
OTHER_ID = "019fc448-d29b-8abc-9def-0123456789ac"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

PLAIN: Json = {
    "wait_id": ID,
    "original": {
        "topic": "orders",
        "partition": 3,
        "offset": 1234567,
        "timestamp_ms": 1795227600123,
        "timestamp_type": "create",
        "key": b64(b"customer-17"),
        "value": b64(b'{"amount": 5}'),
        "headers": listed([("tenant", b"acme"), ("tenant", b"other"), ("empty", b""), ("null", None)]),
    },
    "expires_at_ms": 1795228200123,
    "group": "billing",
    "instance": "host-1/2026-11-21T02:00:00Z",
    "delivery": 1,
    "dead_letter_topic": "waitreg.dlq",
    "expiry_policy": "dlq",
    "max_deliveries": 3,
    "idempotency_key": None,
    "source": None,
    "traceparent": None,
    "tracestate": None,
}
PLAIN_TEXTS = {
    "ORIGINAL_TOPIC": "orders",
    "ORIGINAL_PARTITION": "3",
    "ORIGINAL_OFFSET": "1234567",
    "ORIGINAL_TIMESTAMP": "1795227600123",
    "ORIGINAL_TIMESTAMP_TYPE": "create",
    "ORIGINAL_KEY": "customer-17",
    "ORIGINAL_HEADERS": '[["tenant","YWNtZQ=="],["tenant","b3RoZXI="],["empty",""],["null",null]]',
    "ORIGINAL_VALUE_NULL": "false",
    "WAIT_EXPIRATION_UUID": ID,
    "WAIT_EXPIRATION_TIME": "2026-11-21T02:30:00.123Z",
    "WAIT_GROUP": "billing",
    "WAIT_INSTANCE": "host-1/2026-11-21T02:00:00Z",
    "WAIT_DELIVERY": "1",
    "WAIT_DEAD_LETTER_TOPIC": "waitreg.dlq",
    "WAIT_EXPIRY_POLICY": "dlq",
    "WAIT_MAX_DELIVERIES": "3",
}

REDELIVERED: Json = {"topic": "orders.billing.redeliver", "partition": 0, "offset": 17}
LARGEST: dict[str, str | bytes | None] = {
    "ORIGINAL_TIMESTAMP_TYPE": "append",
    "ORIGINAL_PARTITION": "2147483647",
    "ORIGINAL_OFFSET": "9223372036854775807",
}


def changed(original: Json | None = None, **fields: Json) -> Json:
    return {**PLAIN, "original": {**PLAIN["original"], **(original or {})}, **fields}


def kafka(
    texts: dict[str, str | bytes | None], key: bytes | None = ID.encode(), value: bytes | None = b'{"amount": 5}'
) -> Json:
    """Return a record of the wait topic: the plain one's headers, changed and appended to."""
    return _kafka({**PLAIN_TEXTS, **texts}, key, value)


def _kafka(texts: dict[str, str | bytes | None], key: bytes | None, value: bytes | None) -> Json:
    headers = [(name, text.encode() if isinstance(text, str) else text) for name, text in texts.items()]
    return {"key": b64(key), "value": b64(value), "headers": listed(headers)}


def _round_trips() -> dict[str, tuple[Json, Json]]:
    traced = listed([("traceparent", TRACEPARENT.encode()), ("tracestate", b"a=1")])
    traced_json = json.dumps(traced, separators=(",", ":"))
    return {
        "plain": (PLAIN, kafka({})),
        "null key": (changed({"key": None}), kafka({"ORIGINAL_KEY": None})),
        "empty key": (changed({"key": ""}), kafka({"ORIGINAL_KEY": b""})),
        "binary key": (changed({"key": b64(b"\xff\x00")}), kafka({"ORIGINAL_KEY": b"\xff\x00"})),
        "null value": (changed({"value": None}), kafka({"ORIGINAL_VALUE_NULL": "true"}, value=b"")),
        "empty value": (changed({"value": ""}), kafka({}, value=b"")),
        "no headers": (changed({"headers": []}), kafka({"ORIGINAL_HEADERS": "[]"})),
        "no timestamp": (
            changed({"timestamp_ms": -1, "timestamp_type": "none"}),
            kafka({"ORIGINAL_TIMESTAMP": "-1", "ORIGINAL_TIMESTAMP_TYPE": "none"}),
        ),
        "append time, largest numbers": (
            changed({"timestamp_type": "append", "partition": 2**31 - 1, "offset": 2**63 - 1}),
            kafka(LARGEST),
        ),
        "redelivered": (
            changed(delivery=2, expiry_policy="redeliver", idempotency_key=OTHER_ID, source=REDELIVERED),
            kafka(
                {
                    "WAIT_DELIVERY": "2",
                    "WAIT_EXPIRY_POLICY": "redeliver",
                    "WAIT_IDEMPOTENCY_KEY": OTHER_ID,
                    "SOURCE_TOPIC": "orders.billing.redeliver",
                    "SOURCE_PARTITION": "0",
                    "SOURCE_OFFSET": "17",
                }
            ),
        ),
        "trace carried on": (
            changed({"headers": traced}, traceparent=TRACEPARENT, tracestate="a=1"),
            kafka({"ORIGINAL_HEADERS": traced_json, "traceparent": TRACEPARENT, "tracestate": "a=1"}),
        ),
    }


def _read_only() -> dict[str, tuple[Json, Json]]:
    doubled = kafka({})
    doubled["headers"].append(["WAIT_GROUP", b64(b"the last counts")])
    return {
        "foreign headers are ignored": (PLAIN, kafka({"x": b"\xff", "WAIT_": None})),
        "of two headers the last counts": (changed(group="the last counts"), doubled),
        "what can't be trace context is left out": (PLAIN, kafka({"traceparent": b"\xff\x00", "tracestate": None})),
        "trace context with DEL is left out": (PLAIN, kafka({"traceparent": b"00-\x7f", "tracestate": b""})),
        "trace context of 1024 characters": (changed(tracestate="a" * 1024), kafka({"tracestate": b"a" * 1024})),
        "trace context of 1025 characters is left out": (PLAIN, kafka({"tracestate": b"a" * 1025})),
        "leading zeros": (PLAIN, kafka({"ORIGINAL_PARTITION": "003"})),
        "null headers are none": (changed({"headers": []}), kafka({"ORIGINAL_HEADERS": None})),
    }


BAD: dict[str, dict[str, str | bytes | None]] = {
    "partition of letters": {"ORIGINAL_PARTITION": "three"},
    "partition with blanks": {"ORIGINAL_PARTITION": " 3"},
    "partition with a plus": {"ORIGINAL_PARTITION": "+3"},
    "partition with an underscore": {"ORIGINAL_PARTITION": "1_0"},
    "partition in other digits": {"ORIGINAL_PARTITION": "\u0663"},
    "partition below 0": {"ORIGINAL_PARTITION": "-1"},
    "partition beyond 32 bits": {"ORIGINAL_PARTITION": "2147483648"},
    "null partition": {"ORIGINAL_PARTITION": None},
    "empty partition": {"ORIGINAL_PARTITION": ""},
    "offset beyond 64 bits": {"ORIGINAL_OFFSET": "9223372036854775808"},
    "offset of many digits": {"ORIGINAL_OFFSET": "1" * 5000},
    "timestamp with a fraction": {"ORIGINAL_TIMESTAMP": "1.5"},
    "unknown timestamp type": {"ORIGINAL_TIMESTAMP_TYPE": "CreateTime"},
    "null topic": {"ORIGINAL_TOPIC": None},
    "empty topic": {"ORIGINAL_TOPIC": ""},
    "topic not UTF-8": {"ORIGINAL_TOPIC": b"\xff"},
    "group with NUL": {"WAIT_GROUP": "a\0b"},
    "headers not JSON": {"ORIGINAL_HEADERS": "tenant=acme"},
    "value null that is null": {"ORIGINAL_VALUE_NULL": None},
    "value null neither true nor false": {"ORIGINAL_VALUE_NULL": "TRUE"},
    "value null beside a value": {"ORIGINAL_VALUE_NULL": "true"},
    "another id than the key": {"WAIT_EXPIRATION_UUID": OTHER_ID},
    "id in capitals": {"WAIT_EXPIRATION_UUID": ID.upper()},
    "expiry that is no time": {"WAIT_EXPIRATION_TIME": "tomorrow"},
    "expiry in ms": {"WAIT_EXPIRATION_TIME": "1795228200123"},
    "null expiry": {"WAIT_EXPIRATION_TIME": None},
    "delivery 0": {"WAIT_DELIVERY": "0"},
    "max deliveries 0": {"WAIT_MAX_DELIVERIES": "0"},
    "idempotency key that is none": {"WAIT_IDEMPOTENCY_KEY": "k-1"},
    "unknown policy": {"WAIT_EXPIRY_POLICY": "DLQ"},
    "half a source": {"SOURCE_TOPIC": "orders.billing.redeliver"},
}


def _refused() -> dict[str, Json]:
    return {
        **{name: kafka(texts) for name, texts in BAD.items()},
        "null value (a tombstone)": kafka({}, value=None),
        "null key": kafka({}, key=None),
        "empty key": kafka({}, key=b""),
        "key not UTF-8": kafka({}, key=b"\xff"),
        "key that is no id": kafka({}, key=b"customer-17"),
        "no headers": _kafka({}, ID.encode(), b"x"),
    }


def wait_record_vectors() -> list[Json]:
    both = _round_trips()
    return [
        *(
            vector(name, "encode", fields, {"value": record["value"], "headers": record["headers"]})
            for name, (fields, record) in both.items()
        ),
        *(vector(name, "decode", record, fields) for name, (fields, record) in {**both, **_read_only()}.items()),
        *(vector(name, "decode", record, "error") for name, record in _refused().items()),
    ]


OLDER: dict[str, str | bytes | None] = {
    "ORIGINAL_TOPIC": "orders",
    "PARTITION": "3",
    "ORIGINAL_OFFSET": "1234567",
    "ORIGINAL_TIMESTAMP": "1795227600123",
    "ORIGINAL_KEY": "customer-17",
    "ORIGINAL_HEADERS": '{"tenant":"acme","note":"\u20ac"}',
    "WAIT_EXPIRATION_UUID": ID,
    "WAIT_EXPIRATION_TIME": "2026-11-21T02:30:00.123456",
}


def legacy_vectors() -> list[Json]:
    texts = OLDER
    nothing = dict.fromkeys(
        ("group", "instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries"), None
    )
    headers = listed([("tenant", b"acme"), ("note", b"\xe2\x82\xac")])
    fields = changed({"timestamp_type": None, "headers": headers}, **nothing)
    least: dict[str, str | bytes | None] = {
        "ORIGINAL_TOPIC": "orders",
        "WAIT_EXPIRATION_TIME": "2026-11-21T02:30:00.123",
    }
    unknown = dict.fromkeys(("partition", "offset", "timestamp_ms", "timestamp_type", "key"), None)
    read: dict[str, tuple[dict[str, str | bytes | None], Json]] = {
        "all that it has": (texts, fields),
        "a time without seconds": (
            {**texts, "WAIT_EXPIRATION_TIME": "2026-11-21T02:30"},
            {**fields, "expires_at_ms": 1795228200000},
        ),
        "ORIGINAL_PARTITION counts before PARTITION": (
            {**texts, "ORIGINAL_PARTITION": "5"},
            {**fields, "original": {**fields["original"], "partition": 5}},
        ),
        "the least": (least, changed({**unknown, "headers": []}, **nothing)),
    }
    value = b'{"amount": 5}'
    vectors = [
        vector(name, "decode", _kafka(given, ID.encode(), value), expected) for name, (given, expected) in read.items()
    ]
    refused: dict[str, dict[str, str | bytes | None]] = {
        "no topic": {name: text for name, text in texts.items() if name != "ORIGINAL_TOPIC"},
        "no expiry": {name: text for name, text in texts.items() if name != "WAIT_EXPIRATION_TIME"},
        "partition of letters": {**texts, "PARTITION": "three"},
        "nested headers": {**texts, "ORIGINAL_HEADERS": '{"a":{"b":"c"}}'},
    }
    return [*vectors, *(vector(n, "decode", _kafka(t, ID.encode(), value), "error") for n, t in refused.items())]
