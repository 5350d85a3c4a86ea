"""The lineage block, looked for from the front: a WAIT_LINEAGE that counts its own index, then only block names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fuzz.rereading.headers import ATTEMPTS, INT31, INT63, INT64, OwnHeaders
from tests.fuzz.rereading.headers_json import Refused

Headers = Sequence[tuple[str, bytes | None]]

FAILURE = ("DLQ_REASON", "DLQ_ERROR_CLASS", "DLQ_ERROR_MESSAGE", "DLQ_ERROR_STACKTRACE", "DLQ_TIME")
BLOCK = (
    *("ORIGINAL_TOPIC", "ORIGINAL_PARTITION", "ORIGINAL_OFFSET", "ORIGINAL_TIMESTAMP", "ORIGINAL_TIMESTAMP_TYPE"),
    *("WAIT_EXPIRATION_UUID", "WAIT_PARTITION", "WAIT_OFFSET", "WAIT_GROUP", "WAIT_INSTANCE", "WAIT_DELIVERY"),
    *FAILURE,
)
REASONS = ("failed", "expired", "blocked", "malformed", "unregistrable")


def reread_block(headers: Headers) -> tuple[int, dict[str, Any]] | None:
    """Return how many headers are original, and the lineage by name; None when all of them are."""
    for index, (name, value) in enumerate(headers):
        rest = headers[index + 1 :]
        if name == "WAIT_LINEAGE" and value == str(index).encode() and all(name in BLOCK for name, _ in rest):
            try:
                return index, _lineage(OwnHeaders(rest))
            except Refused:
                return None
    return None


def reread_failure(headers: Headers) -> tuple[str, int] | None:
    """Return reason and time (ms since the epoch) of a dead letter of this system; None when it isn't one."""
    found = reread_block(headers)
    if found is None:
        return None
    own = OwnHeaders(headers[found[0] + 1 :])
    try:
        reason, time_ms = own.word("DLQ_REASON", *REASONS), own.time_ms("DLQ_TIME")
    except Refused:
        return None
    return None if reason is None or time_ms is None else (reason, time_ms)


def _lineage(own: OwnHeaders) -> dict[str, Any]:
    lineage = {
        "original_topic": own.text("ORIGINAL_TOPIC"),
        "original_partition": own.number("ORIGINAL_PARTITION", INT31),
        "original_offset": own.number("ORIGINAL_OFFSET", INT63),
        "original_timestamp_ms": own.number("ORIGINAL_TIMESTAMP", INT64),
        "original_timestamp_type": own.word("ORIGINAL_TIMESTAMP_TYPE", "create", "append", "none"),
        "wait_id": own.wait_id("WAIT_EXPIRATION_UUID"),
        "wait_partition": own.number("WAIT_PARTITION", INT31),
        "wait_offset": own.number("WAIT_OFFSET", INT63),
        "group": own.text("WAIT_GROUP"),
        "instance": own.text("WAIT_INSTANCE"),
        "delivery": own.number("WAIT_DELIVERY", ATTEMPTS),
    }
    if lineage["original_topic"] is None or lineage["wait_id"] is None:
        raise Refused
    return lineage
