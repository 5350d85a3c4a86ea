"""The records of a run, decoded by the product's codec, which must write them again byte for byte.

The golden vectors (`tests/vectors`) hold that codec to the format, so the checker needs no decoder of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from tests.chaos.history.entries import Registration, Republished, Tombstone, TopicRecord, Unreadable, WaitEntry
from tests.chaos.history.history import Input
from tests.support.kafka_io import Headers, ReadRecord
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.errors import DataError
from wait_registry.records import lineage as blocks
from wait_registry.records.dead_letter import dead_letter_headers, decode_dead_letter
from wait_registry.records.header_names import (
    RETRY_ERROR_CLASS,
    RETRY_ERROR_MESSAGE,
    TRACEPARENT,
    TRACESTATE,
    WAIT_GROUP,
)
from wait_registry.records.original import Original
from wait_registry.records.tombstone import decode_outcome, tombstone_headers
from wait_registry.records.wait_record import decode_wait_record
from waitreg.load.manifest import Fingerprint, fingerprint

UNREADABLE_HEADERS: Final = "a name isn't UTF-8"
"""Instead of a digest: neither our client nor the processor's can read these headers."""
RETRY_NAMES: Final = frozenset({RETRY_ERROR_CLASS, RETRY_ERROR_MESSAGE})
# A character of a name is six in JSON at worst; brackets, quotes and commas; all that a wait record says of its own.
_NAMES: Final = 6
_HEADER: Final = 16
_AROUND: Final = 4_000


def content_of(record: ReadRecord) -> Fingerprint:
    """Return the fingerprint of a whole record."""
    whole = fingerprint(record.key, record.value, record.headers)
    return whole if record.is_readable else Fingerprint(whole.key, whole.value, UNREADABLE_HEADERS)


def as_input(record: ReadRecord) -> Input:
    """Return a record of an input topic; a wait record has its headers as JSON: names escaped, base64."""
    headers = record.headers if record.is_readable else ()
    in_headers = sum(_NAMES * len(name) + 2 * len(value or b"") + _HEADER for name, value in headers)
    at_most = len(record.key or b"") + len(record.value or b"") + in_headers + _AROUND
    return Input(record.place, record.timestamp_ms, content_of(record), record.timestamp_type, at_most)


def wait_entry(record: ReadRecord, committed: bool) -> WaitEntry:
    """Decode a record of the wait topic; `Unreadable` unless it is exactly what the format says."""
    wait_id = "" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    where = (record.partition, record.offset, record.timestamp_ms, wait_id, committed)
    try:
        if not record.is_readable:
            raise DataError("a header's name isn't UTF-8")
        if record.value is None:
            return Tombstone(*where, outcome=_outcome(record.headers))
        return Registration(*where, **_registered(record.key, record.value, record.headers))
    except DataError as error:
        group = dict(record.headers).get(WAIT_GROUP) or b""
        return Unreadable(*where, str(error), group.decode("utf-8", "replace"))


def republished(record: ReadRecord, committed: bool) -> TopicRecord:
    """Decode what is published again; what the product can't have written has no lineage."""
    where, headers = (*record.place, record.timestamp_ms, committed), record.headers
    originals, block, failure_headers = blocks.split_lineage(headers)
    failure = decode_dead_letter(headers).failure if failure_headers else None
    lineage = None if block is None else _lineage(block)
    if block is None or lineage is None or bool(failure_headers) != (failure is not None):
        return TopicRecord(*where, content_of(record))
    if failure is None:
        errors = [header for header in headers[len(originals) :] if header[0] in RETRY_NAMES]
        again, why = [*blocks.append_lineage(originals, block), *errors], {}
    else:
        again = dead_letter_headers(originals, block, failure)
        texts = {name: getattr(failure, name) for name in ("error_class", "error_message", "error_stacktrace")}
        why = {"reason": failure.reason.value, "time_ms": failure.time_ms, **texts}
    if Counter(again) != Counter(headers):
        return TopicRecord(*where, content_of(record))
    return Republished(*where, fingerprint(record.key, record.value, originals), **lineage, **why)


def _outcome(headers: Headers) -> str:
    outcome = decode_outcome(headers)
    if outcome is None or list(headers) != tombstone_headers(outcome):
        raise DataError(f"a tombstone has the headers {headers!r}")
    return outcome.value


def _registered(key: bytes | None, value: bytes, headers: Headers) -> dict[str, Any]:
    """Return the fields of a registration; raise DataError if one is missing or the record isn't written as it is."""
    record = decode_wait_record(key, value, headers)
    again, original = encode_wait_record(record), record.original
    if again[0] != value or _own(again[1]) != _own(headers):
        raise DataError("a wait record isn't written as the format says")
    names = ("group", "instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries", "expires_at_ms")
    fields = {name: getattr(record, name) for name in names}
    missing = [name for name in names if not fields[name] and (name != "expires_at_ms" or fields[name] is None)]
    if missing or not isinstance(original, Original):
        raise DataError(f"a registration lacks {', '.join(missing) or 'its original'}")
    return {
        **fields,
        "original": tuple(original[:3]),
        "timestamp_ms": original.timestamp_ms,
        "timestamp_type": original.timestamp_type,
        "content": fingerprint(original.key, original.value, original.headers),
        "idempotency_key": record.idempotency_key or record.wait_id,
        "source": None if record.source is None else tuple(record.source),
    }


def _own(headers: Iterable[tuple[str, bytes | None]]) -> Counter[tuple[str, bytes | None]]:
    return Counter(header for header in headers if header[0] not in (TRACEPARENT, TRACESTATE))


def _lineage(block: blocks.Lineage) -> dict[str, Any] | None:
    """Return a complete block's fields; only a record that was never registered lacks both parts of its place."""
    original = (block.original_topic, block.original_partition, block.original_offset)
    needed = (*original[1:], block.original_timestamp_ms, block.original_timestamp_type)
    registration = (block.wait_partition, block.wait_offset)
    if None in needed or not (block.group and block.instance and block.delivery) or registration.count(None) == 1:
        return None
    return {
        "original": original,
        "timestamp_ms": block.original_timestamp_ms,
        "timestamp_type": block.original_timestamp_type,
        "wait_id": block.wait_id,
        "registration": None if None in registration else registration,
        "group": block.group,
        "instance": block.instance,
        "delivery": block.delivery,
        "max_deliveries": block.max_deliveries,
        "idempotency_key": block.idempotency_key or block.wait_id,
    }
