"""Vectors of the lineage block."""

from __future__ import annotations

from tests.vectors.generating.vector import Json, listed, vector
from tests.vectors.generating.wait_record import ID, OTHER_ID, REDELIVERED

LINEAGE: Json = {
    "original_topic": "orders",
    "original_partition": 3,
    "original_offset": 1234567,
    "original_timestamp_ms": 1795227600123,
    "original_timestamp_type": "create",
    "wait_id": ID,
    "wait_partition": 1,
    "wait_offset": 99,
    "group": "billing",
    "instance": "host-1",
    "delivery": 2,
    "max_deliveries": None,
    "idempotency_key": None,
    "source": None,
}
BLOCK: tuple[tuple[str, bytes | None], ...] = (
    ("ORIGINAL_TOPIC", b"orders"),
    ("ORIGINAL_PARTITION", b"3"),
    ("ORIGINAL_OFFSET", b"1234567"),
    ("ORIGINAL_TIMESTAMP", b"1795227600123"),
    ("ORIGINAL_TIMESTAMP_TYPE", b"create"),
    ("WAIT_EXPIRATION_UUID", ID.encode()),
    ("WAIT_PARTITION", b"1"),
    ("WAIT_OFFSET", b"99"),
    ("WAIT_GROUP", b"billing"),
    ("WAIT_INSTANCE", b"host-1"),
    ("WAIT_DELIVERY", b"2"),
)
# What a later delivery adds.
LATER: tuple[tuple[str, bytes | None], ...] = (
    ("WAIT_IDEMPOTENCY_KEY", OTHER_ID.encode()),
    ("SOURCE_TOPIC", b"orders.billing.redeliver"),
    ("SOURCE_PARTITION", b"0"),
    ("SOURCE_OFFSET", b"17"),
)
LATER_LINEAGE: Json = {**LINEAGE, "idempotency_key": OTHER_ID, "source": REDELIVERED}
Header = tuple[str, bytes | None]

ORIGINALS: dict[str, list[Header]] = {
    "no headers": [],
    "ordinary headers": [("a", b"1"), ("b", None), ("a", b""), ("c", b"\xff\x00")],
    "headers of the same names": [("WAIT_GROUP", b"mine"), ("ORIGINAL_TOPIC", None), ("DLQ_REASON", b"x")],
    "headers that imitate a block": [("a", b""), ("WAIT_LINEAGE", b"1"), *BLOCK],
    "headers that end in WAIT_LINEAGE": [("a", b""), ("WAIT_LINEAGE", b"1")],
    "headers of WAIT_LINEAGE only": [("WAIT_LINEAGE", b"0"), ("WAIT_LINEAGE", b"1"), ("WAIT_LINEAGE", b"2")],
}


def block_at(index: int, *more: Header) -> list[Header]:
    """Return the block after this number of original headers."""
    return [("WAIT_LINEAGE", str(index).encode()), *BLOCK, *more]


def without(*names: str) -> list[Header]:
    """Return the block after no headers, without some of its own."""
    return [header for header in block_at(0) if header[0] not in names]


def replaced(name: str, value: bytes | None) -> list[Header]:
    """Return the block behind no headers with one value replaced."""
    return [(known, value if known == name else old) for known, old in block_at(0)]


def _not_blocks() -> dict[str, list[Header]]:
    return {
        "no headers at all": [],
        "only ordinary headers": [("a", b"1")],
        "another index": [("a", b""), *block_at(0)],
        "an index beyond the headers": block_at(7),
        "an index with a leading zero": replaced("WAIT_LINEAGE", b"00"),
        "a null index": replaced("WAIT_LINEAGE", None),
        "a header behind the block": [*block_at(0), ("traceparent", b"")],
        "a header within the block": [*block_at(0), ("a", b""), ("WAIT_GROUP", b"x")],
        "block names without WAIT_LINEAGE": list(BLOCK),
        "a block without topic": without("ORIGINAL_TOPIC"),
        "a block without id": without("WAIT_EXPIRATION_UUID"),
        "WAIT_LINEAGE alone": [("WAIT_LINEAGE", b"0")],
        "an unreadable partition": replaced("ORIGINAL_PARTITION", b"x"),
        "an unreadable delivery": replaced("WAIT_DELIVERY", b"0"),
        "an unreadable number of deliveries": block_at(0, ("WAIT_MAX_DELIVERIES", b"0")),
        "a null group": replaced("WAIT_GROUP", None),
        "a topic that isn't UTF-8": replaced("ORIGINAL_TOPIC", b"\xff"),
        "an id that is none": replaced("WAIT_EXPIRATION_UUID", b"x"),
        "a key that is none": block_at(0, ("WAIT_IDEMPOTENCY_KEY", b"x")),
        "half a source": block_at(0, ("SOURCE_TOPIC", b"orders")),
        "an unknown timestamp type": replaced("ORIGINAL_TIMESTAMP_TYPE", b"x"),
    }


def _split_to(headers: list[Header], lineage: Json, others: Json) -> Json:
    return {"headers": listed(headers), "lineage": lineage, "others": others}


def lineage_vectors() -> list[Json]:
    unregistered = {**LINEAGE, "wait_partition": None, "wait_offset": None}
    vectors = []
    for name, originals in ORIGINALS.items():
        joined = listed([*originals, *block_at(len(originals))])
        vectors.append(vector(name, "append", {"headers": listed(originals), "lineage": LINEAGE}, joined))
        vectors.append(vector(name, "split", joined, _split_to(originals, LINEAGE, {})))
    short = listed(without("WAIT_PARTITION", "WAIT_OFFSET"))
    vectors.append(vector("what is unknown", "append", {"headers": [], "lineage": unregistered}, short))
    vectors.append(vector("what is unknown", "split", short, _split_to([], unregistered, {})))
    again = {**LINEAGE, "max_deliveries": 4}
    counted = block_at(0, ("WAIT_MAX_DELIVERIES", b"4"))
    vectors.append(vector("deliveries are counted", "append", {"headers": [], "lineage": again}, listed(counted)))
    later = listed(block_at(0, *LATER))
    vectors.append(vector("a later delivery", "append", {"headers": [], "lineage": LATER_LINEAGE}, later))
    vectors.append(vector("a later delivery", "split", later, _split_to([], LATER_LINEAGE, {})))
    retry = [*counted, ("RETRY_ERROR_CLASS", b"TimeoutError"), ("RETRY_ERROR_MESSAGE", b"late")]
    vectors.append(vector("a retry record's headers", "split", listed(retry), _split_to([], again, {})))
    letter = [("a", b"1"), *block_at(1, ("DLQ_REASON", b"failed"), ("DLQ_ERROR_MESSAGE", None))]
    others = {"DLQ_REASON": "ZmFpbGVk", "DLQ_ERROR_MESSAGE": None}
    vectors.append(
        vector("a dead letter's headers", "split", listed(letter), _split_to([("a", b"1")], LINEAGE, others))
    )
    nested: list[Header] = [("a", b"1"), *block_at(1)]
    vectors.append(
        vector("of two blocks the last", "split", listed([*nested, *block_at(13)]), _split_to(nested, LINEAGE, {}))
    )
    for name, headers in _not_blocks().items():
        vectors.append(vector(name, "split", listed(headers), _split_to(headers, None, {})))
    return vectors
