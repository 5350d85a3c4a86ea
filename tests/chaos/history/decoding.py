"""The records of a run, decoded by the product's codec, which must write them again byte for byte.

What the format is, the golden vectors say (`tests/vectors`), against which that codec is tested. So no reading of its
own is needed here: what a service wrote is what the format says, or it is unreadable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from tests.chaos.history.entries import Lineage, Registration, Republished, WaitEntry
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.demo.manifest import Fingerprint, fingerprint
from wait_registry.errors import DataError
from wait_registry.records import lineage as blocks
from wait_registry.records.dead_letter import dead_letter_headers, decode_dead_letter
from wait_registry.records.names import TRACEPARENT, TRACESTATE, WAIT_GROUP
from wait_registry.records.original import Original
from wait_registry.records.tombstone import decode_outcome, tombstone_headers
from wait_registry.records.wait_record import WaitRecord, decode_wait_record

Headers = tuple[tuple[str, bytes | None], ...]

UNREADABLE_HEADERS: Final = "a name isn't UTF-8"
"""In the place of a digest: the client can't read these headers, ours or the processor's."""
# A character of a name is six in JSON at worst; brackets, quotes and commas; all that a wait record says of its own.
_NAMES: Final = 6
_HEADER: Final = 16
_AROUND: Final = 4_000


@dataclass(frozen=True, slots=True)
class RawRecord:
    """Nothing decoded; ``timestamp_ms`` is -1 when there is none, ``headers`` None when the client can't read them.

    ``timestamp_type`` is "create", "append" or "none".
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    timestamp_type: str = "create"

    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return (self.topic, self.partition, self.offset)

    @property
    def content(self) -> Fingerprint:
        """The fingerprint of the whole record."""
        whole = fingerprint(self.key, self.value, self.headers)
        return whole if self.headers is not None else Fingerprint(whole.key, whole.value, UNREADABLE_HEADERS)

    @property
    def registered_bytes(self) -> int:
        """The most that it can take in a wait record, which has its headers as JSON: names escaped, base64."""
        own = sum(_NAMES * len(name) + 2 * len(value or b"") + _HEADER for name, value in self.headers or ())
        return len(self.key or b"") + len(self.value or b"") + own + _AROUND

    @property
    def input_bytes(self) -> int:
        """What it counts for in its processor's hands: key, value, names and values of headers."""
        own = sum(len(name) + len(value or b"") for name, value in self.headers or ())
        return len(self.key or b"") + len(self.value or b"") + own


def wait_entry(record: RawRecord, committed: bool) -> WaitEntry:
    """Decode one record of the wait topic; one that isn't exactly what the format says is an entry that says why."""
    wait_id = "" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    place = (record.partition, record.offset, record.timestamp_ms, wait_id, committed)
    try:
        if record.headers is None:
            raise DataError("a header's name isn't UTF-8")
        if record.value is None:
            return WaitEntry(*place, outcome=_outcome(record.headers))
        registration = _registration(record.key, record.value, record.headers)
    except DataError as error:
        group = dict(record.headers or ()).get(WAIT_GROUP) or b""
        return WaitEntry(*place, unreadable=str(error), group=group.decode("utf-8", "replace"))
    return WaitEntry(*place, registration=registration, group=registration.group)


def republished(record: RawRecord, committed: bool) -> Republished:
    """Decode one record of a dead letter or redelivery topic; what we can't have written has no lineage."""
    place = (*record.place, record.timestamp_ms, committed)
    headers = record.headers or ()
    originals, said, failure_headers = blocks.split_lineage(headers)
    failure = decode_dead_letter(headers).failure if failure_headers else None
    lineage = None if said is None else _lineage(said)
    if said is None or lineage is None or bool(failure_headers) != (failure is not None):
        return Republished(*place, record.content)
    if failure is None:
        again, why = blocks.append_lineage(originals, said), ("", None, None, None, None)
    else:
        again = dead_letter_headers(originals, said, failure)
        texts = (failure.error_class, failure.error_message, failure.error_stacktrace)
        why = (failure.reason.value, failure.time_ms, *texts)  # type: ignore[assignment]
    if Counter(again) != Counter(headers):
        return Republished(*place, record.content)
    return Republished(*place, fingerprint(record.key, record.value, originals), lineage, *why)


def _outcome(headers: Headers) -> str:
    outcome = decode_outcome(headers)
    if outcome is None or list(headers) != tombstone_headers(outcome):
        raise DataError(f"a tombstone has the headers {headers!r}")
    return outcome.value


def _registration(key: bytes | None, value: bytes, headers: Headers) -> Registration:
    record = decode_wait_record(key, value, headers)
    again = encode_wait_record(record)
    if again[0] != value or _own(again[1]) != _own(headers):
        raise DataError("a wait record isn't written as the format says")
    return registration_of(record)


def registration_of(record: WaitRecord) -> Registration:
    """Return what a wait record says; raise DataError when it doesn't say all."""
    original, source = record.original, record.source
    said = (record.group, record.instance, record.delivery, record.dead_letter_topic, record.expiry_policy)
    group, instance, delivery, topic, policy = said
    most = record.max_deliveries
    if (
        not isinstance(original, Original)
        or not (group and instance and delivery and topic and policy and most)
        or record.expires_at_ms is None
    ):
        raise DataError(
            f"a registration doesn't say all: {said}, {original[:5] if isinstance(original, tuple) else ''}"
        )
    return Registration(
        original=original[:3],
        timestamp_ms=original.timestamp_ms,
        content=fingerprint(original.key, original.value, original.headers),
        wait_id=record.wait_id,
        expires_at_ms=record.expires_at_ms,
        group=group,
        instance=instance,
        delivery=delivery,
        dead_letter_topic=topic,
        expiry_policy=policy,
        max_deliveries=most,
        source=None if source is None else (source.topic, source.partition, source.offset),
        timestamp_type=original.timestamp_type,
    )


def _own(headers: list[tuple[str, bytes | None]] | Headers) -> Counter[tuple[str, bytes | None]]:
    return Counter(header for header in headers if header[0] not in (TRACEPARENT, TRACESTATE))


def _lineage(said: blocks.Lineage) -> Lineage | None:
    """Return the lineage of a block that says all; without a registration it has neither its partition nor offset."""
    partition, offset, timestamp_ms = said.original_partition, said.original_offset, said.original_timestamp_ms
    kind, wait_partition, wait_offset = said.original_timestamp_type, said.wait_partition, said.wait_offset
    if partition is None or offset is None or timestamp_ms is None or kind is None:
        return None
    if not (said.group and said.instance and said.delivery) or (wait_partition is None) != (wait_offset is None):
        return None
    return Lineage(
        (said.original_topic, partition, offset),
        timestamp_ms,
        said.wait_id,
        None if wait_partition is None or wait_offset is None else (wait_partition, wait_offset),
        said.group,
        said.instance,
        said.delivery,
        kind,
    )
