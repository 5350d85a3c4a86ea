"""Vectors of dead letters and of redeliveries."""

from __future__ import annotations

from tests.vectors.generating.lineage import LATER, LATER_LINEAGE, LINEAGE, Header, block_at, replaced
from tests.vectors.generating.vector import Json, b64, listed, vector

FAILURE: Json = {
    "reason": "failed",
    "error_class": "builtins.ValueError",
    "error_message": "no such \u20ac",
    "error_stacktrace": "line 1\nline 2",
    "time_ms": 1795227601000,
}
DLQ: tuple[Header, ...] = (
    ("DLQ_REASON", b"failed"),
    ("DLQ_ERROR_CLASS", b"builtins.ValueError"),
    ("DLQ_ERROR_MESSAGE", "no such \u20ac".encode()),
    ("DLQ_ERROR_STACKTRACE", b"line 1\nline 2"),
    ("DLQ_TIME", b"2026-11-21T02:20:01.000Z"),
)
BARE: Json = {"error_class": None, "error_message": None, "error_stacktrace": None, "time_ms": 1795227601000}


def _both_ways() -> dict[str, tuple[list[Header], Json, list[Header]]]:
    """Original headers, failure, headers of the dead letter."""
    imitation: list[Header] = [("a", b""), *block_at(1, *DLQ)]
    cases: dict[str, tuple[list[Header], Json, list[Header]]] = {
        "all said": ([("a", b"1"), ("a", None)], FAILURE, [("a", b"1"), ("a", None), *block_at(2, *DLQ)]),
        "headers that imitate a dead letter": (
            imitation,
            FAILURE,
            [*imitation, *block_at(len(imitation), *DLQ)],
        ),
    }
    for reason in ("failed", "expired", "blocked", "malformed", "unregistrable"):
        said: list[Header] = [("DLQ_REASON", reason.encode()), ("DLQ_TIME", b"2026-11-21T02:20:01.000Z")]
        cases[f"{reason}, no more said"] = ([], {"reason": reason, **BARE}, block_at(0, *said))
    return cases


def _foreign() -> dict[str, list[Header]]:
    time: Header = ("DLQ_TIME", b"2026-11-21T02:20:01.000Z")
    return {
        "no headers": [],
        "foreign headers": [("a", b"1"), ("DLQ_REASON", b"failed"), time],
        "a redelivery": block_at(0),
        "no reason": block_at(0, time),
        "an unknown reason": block_at(0, ("DLQ_REASON", b"bored"), time),
        "no time": block_at(0, ("DLQ_REASON", b"failed")),
        "an unreadable time": block_at(0, ("DLQ_REASON", b"failed"), ("DLQ_TIME", b"now")),
        "an unreadable block": [*replaced("WAIT_DELIVERY", b"x"), *DLQ],
    }


def dead_letter_vectors() -> list[Json]:
    vectors = []
    for name, (originals, failure, headers) in _both_ways().items():
        given = {"headers": listed(originals), "lineage": LINEAGE, "failure": failure}
        vectors.append(vector(name, "encode", given, listed(headers)))
        vectors.append(vector(name, "decode", listed(headers), given))
    for name, headers in _foreign().items():
        vectors.append(
            vector(name, "decode", listed(headers), {"headers": listed(headers), "lineage": None, "failure": None})
        )
    odd = block_at(0, ("DLQ_REASON", b"failed"), ("DLQ_ERROR_CLASS", b"a\xffb\0c"), ("DLQ_ERROR_MESSAGE", None), DLQ[4])
    lenient = {**FAILURE, "error_class": "a\ufffdb\ufffdc", "error_message": None, "error_stacktrace": None}
    expected = {"headers": [], "lineage": LINEAGE, "failure": lenient}
    vectors.append(vector("error texts are read leniently", "decode", listed(odd), expected))
    later, carrying = {"headers": [], "lineage": LATER_LINEAGE, "failure": FAILURE}, listed(block_at(0, *LATER, *DLQ))
    vectors.append(vector("a later delivery", "encode", later, carrying))
    vectors.append(vector("a later delivery", "decode", carrying, later))
    return [*vectors, *_not_utf8(), *_topics()]


def _not_utf8() -> list[Json]:
    """Each longest beginning of a sequence becomes one replacement character (Unicode, section 3.9, table 3-8)."""
    cases = {
        "a surrogate": (b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"),
        "half of a surrogate at the end": (b"a\xed\xa0", "a\ufffd\ufffd"),
        "an overlong sequence": (b"\xc0\x80\xe0\x80\x80\xf0\x80\x80\x80", "\ufffd" * 9),
        "beyond the last character": (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        "five bytes": (b"\xf8\x88\x80\x80\x80", "\ufffd" * 5),
        "cut sequences": (b"\xe2\x82x\xf0\x90\x80y\xf0\x90\x80", "\ufffdx\ufffdy\ufffd"),
        "a continuation alone": (b"\x80\xbf", "\ufffd\ufffd"),
    }
    time = DLQ[4]
    said: Json = {"reason": "failed", **BARE}
    return [
        vector(
            f"error text not UTF-8: {name}",
            "decode",
            listed(block_at(0, ("DLQ_REASON", b"failed"), ("DLQ_ERROR_MESSAGE", data), time)),
            {"headers": [], "lineage": LINEAGE, "failure": {**said, "error_message": text}},
        )
        for name, (data, text) in cases.items()
    ]


def _topics() -> list[Json]:
    cases = {
        "fixed": (("waitreg.dlq", "orders", "billing"), "waitreg.dlq"),
        "per topic": (("{topic}.dlq", "orders", "billing"), "orders.dlq"),
        "per topic and group": (("{topic}.{group}.dlq", "orders", "billing"), "orders.billing.dlq"),
        "twice the same": (("{topic}.{topic}", "orders", "billing"), "orders.orders"),
        "a group isn't replaced in": (("{group}", "orders", "{topic}"), "error"),
        "another placeholder": (("{name}.dlq", "orders", "billing"), "error"),
        "an empty placeholder": (("{}.dlq", "orders", "billing"), "error"),
        "an open brace": (("{topic.dlq", "orders", "billing"), "error"),
        "empty": (("", "orders", "billing"), "error"),
        "a group that can't be in a topic name": (("{group}.dlq", "orders", "billing/eu"), "error"),
        "the longest": (("{topic}.dlq", "o" * 245, "billing"), "o" * 245 + ".dlq"),
        "too long": (("{topic}.dlq", "o" * 246, "billing"), "error"),
        "a dot": ((".", "orders", "billing"), "error"),
    }
    keys = ("template", "topic", "group")
    return [
        vector(name, "topic", dict(zip(keys, given, strict=True)), expected)
        for name, (given, expected) in cases.items()
    ]


def _consumed(
    name: str,
    headers: list[Header],
    original: Json,
    source: Json,
    delivery: int,
    *,
    topic: str = "orders.billing.redeliver",
    redelivered_to_origin: bool = False,
    max_deliveries: int | None = None,
    foreign: bool = False,
) -> Json:
    now: Json = {
        "topic": topic,
        "partition": 0,
        "offset": 17,
        "timestamp_ms": 1795227700000,
        "timestamp_type": "append",
        "key": b64(b"k"),
        "value": None,
    }
    by = {"group": "billing", "input_topic": "orders", "redelivered_to_origin": redelivered_to_origin}
    again = {"source": source, "delivery": delivery, "max_deliveries": max_deliveries, "foreign": foreign}
    given = {**now, "headers": listed(headers), **by}
    return vector(name, "consumed", given, {"original": {**now, **original}, **again})


def _consumed_vectors() -> list[Json]:
    first = {
        "topic": "orders",
        "partition": 3,
        "offset": 1234567,
        "timestamp_ms": 1795227600123,
        "timestamp_type": "create",
    }
    source = {"topic": "orders.billing.redeliver", "partition": 0, "offset": 17}
    plain: list[Header] = [("a", b"1"), ("WAIT_GROUP", b"billing")]
    block = block_at(2)
    other = [*plain, *((name, b"shipping" if name == "WAIT_GROUP" else value) for name, value in block)]
    elsewhere = [*plain, *((name, b"bills" if name == "ORIGINAL_TOPIC" else value) for name, value in block)]
    broken = [*plain, *((name, b"many" if name == "WAIT_DELIVERY" else value) for name, value in block)]
    uncounted = [header for header in block_at(0) if header[0] != "WAIT_DELIVERY"]
    counted = block_at(0, ("WAIT_MAX_DELIVERIES", b"4"), ("RETRY_ERROR_CLASS", b"TimeoutError"))
    partials = {
        missing: [("a", b"1"), *(header for header in block_at(1) if header[0] != missing)]
        for missing in ("ORIGINAL_PARTITION", "ORIGINAL_OFFSET", "ORIGINAL_TIMESTAMP", "ORIGINAL_TIMESTAMP_TYPE")
    }
    again, alike = [*plain, *block], {"headers": listed([*plain, *block])}
    whole = {**first, "headers": listed(plain)}
    retries, origin = "orders.billing.retry.10s", {**source, "topic": "orders"}
    return [
        _consumed("no headers", [], {"headers": []}, None, 1),
        _consumed("an ordinary record", plain, {"headers": listed(plain)}, None, 1),
        _consumed("a redelivery", again, whole, source, 2),
        _consumed("a dead letter", [*again, *DLQ], whole, source, 2),
        _consumed(
            "a retry record",
            counted,
            {**first, "headers": []},
            {**source, "topic": retries},
            2,
            topic=retries,
            max_deliveries=4,
        ),
        _consumed("a block in the input topic", again, alike, None, 1, topic="orders"),
        _consumed("a redelivery to the origin", again, whole, origin, 2, topic="orders", redelivered_to_origin=True),
        _consumed("another group's block", other, {"headers": listed(plain)}, None, 1, foreign=True),
        _consumed("another input's block", elsewhere, {"headers": listed(elsewhere)}, None, 1),
        _consumed("a block that can't be read", broken, {"headers": listed(broken)}, None, 1),
        *(
            _consumed(f"first delivery without {missing}", headers, {"headers": listed([("a", b"1")])}, source, 2)
            for missing, headers in partials.items()
        ),
        _consumed("delivery unknown", uncounted, {**first, "headers": []}, source, 1),
    ]


def redelivery_vectors() -> list[Json]:
    originals: list[Header] = [("a", b"1"), ("a", None)]
    given = {"headers": listed(originals), "lineage": LINEAGE}
    return [
        vector("delivery as given", "encode", given, listed([*originals, *block_at(2)])),
        vector("no group", "encode", {**given, "lineage": {**LINEAGE, "group": None}}, "error"),
        vector("no delivery", "encode", {**given, "lineage": {**LINEAGE, "delivery": None}}, "error"),
        vector("its topic", "topic", {"topic": "orders", "group": "billing"}, "orders.billing.redeliver"),
        vector("its topic, a group with a dot", "topic", {"topic": "a", "group": "b.c"}, "a.b..c.redeliver"),
        *_consumed_vectors(),
    ]
