"""The wait record: a record in the wait topic with everything that is needed to deliver it again."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from wait_registry.errors import ConfigurationError, DataError
from wait_registry.records import header_names
from wait_registry.records.header_reader import MAX_INT32, MAX_INT64, SystemHeaders, is_trace, missing, unreadable
from wait_registry.records.headers import (
    MAX_JSON_BYTES,
    NO_HEADERS_JSON,
    Headers,
    decode_headers_json,
    readable_headers_json,
)
from wait_registry.records.original import Original, PartialOriginal, Source, TimestampType
from wait_registry.records.times import format_utc_ms
from wait_registry.records.wait_id import is_wait_id

ExpiryPolicy: TypeAlias = Literal["dlq", "redeliver"]
RedeliverTo: TypeAlias = Literal["group", "origin"]

_POLICIES: Final[tuple[str, ...]] = get_args(ExpiryPolicy)
_REDELIVER_TO: Final[tuple[str, ...]] = get_args(RedeliverTo)
_TIMESTAMP_TYPES: Final[tuple[str, ...]] = get_args(TimestampType)
_TRACE_NAMES: Final = (header_names.TRACEPARENT, header_names.TRACESTATE)

# Headers that many records share are built once, since building them is most of their cost.
_TYPE_HEADERS: Final = {kind: (header_names.ORIGINAL_TIMESTAMP_TYPE, kind.encode()) for kind in _TIMESTAMP_TYPES}
_NOT_NULL: Final = (header_names.ORIGINAL_VALUE_NULL, b"false")
_NULL: Final = (header_names.ORIGINAL_VALUE_NULL, b"true")


class RegistrationMode(StrEnum):
    """When a record is written to the wait topic."""

    EAGER = "eager"
    DEFERRED = "deferred"
    OFF = "off"


# A named tuple costs a third of a frozen dataclass; one is built per exported row.
class WaitRecord(NamedTuple):
    """One registration; fields that the legacy format lacks are None, and ``original`` is then partial.

    If ``redeliver_to`` is None it is ``group``. If ``idempotency_key`` is None it is ``wait_id``, as in the first
    delivery.
    """

    original: Original | PartialOriginal
    wait_id: str
    expires_at_ms: int
    group: str | None
    instance: str | None
    delivery: int | None
    dead_letter_topic: str | None
    expiry_policy: ExpiryPolicy | None
    max_deliveries: int | None
    redeliver_to: RedeliverTo | None = None
    idempotency_key: str | None = None
    source: Source | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class ExpiryRule(NamedTuple):
    """What becomes of an expired record of a group.

    Attributes:
        policy: ``dlq`` or ``redeliver``.
        max_deliveries: deliveries under ``redeliver``, from 1.
        redeliver_to: ``group`` or ``origin``: the topic that a redelivery goes to.
    """

    policy: str
    max_deliveries: int
    redeliver_to: RedeliverTo = "group"


class LaterDelivery(NamedTuple):
    """What a wait record says of a record that this system delivered again.

    Attributes:
        source: where the record was consumed now.
        max_deliveries: instead of the group's own, if its lineage has another number.
        idempotency_key: None stands for the wait ID, which gets no header of its own.
    """

    source: Source | None = None
    max_deliveries: int | None = None
    idempotency_key: str | None = None


_FIRST: Final = LaterDelivery()


class WaitRecordEncoder:
    """Writes the headers of wait records for one group and one dead letter topic; runs once per record."""

    __slots__ = ("_group", "_max_bytes", "_origin", "_policy")

    def __init__(
        self,
        group: str,
        instance: str,
        dead_letter_topic: str,
        expiry: ExpiryRule,
        max_bytes: int = MAX_JSON_BYTES,
    ) -> None:
        """Build the headers that all records share.

        Args:
            dead_letter_topic: the resolved name, without ``{topic}``.
            expiry: what becomes of expired records.
            max_bytes: of value, key and headers in JSON together: ``wait.max_message_bytes``.

        Raises:
            ConfigurationError: another expiry policy.
        """
        if expiry.policy not in _POLICIES:
            raise ConfigurationError(f"expiry policy: saw {expiry.policy!r}, expected {' or '.join(_POLICIES)}")
        self._max_bytes = max_bytes
        self._group = ((header_names.WAIT_GROUP, group.encode()), (header_names.WAIT_INSTANCE, instance.encode()))
        self._policy = (
            (header_names.WAIT_DEAD_LETTER_TOPIC, dead_letter_topic.encode()),
            (header_names.WAIT_EXPIRY_POLICY, expiry.policy.encode()),
            (header_names.WAIT_MAX_DELIVERIES, b"%d" % expiry.max_deliveries),
        )
        self._origin = ((header_names.WAIT_REDELIVER_TO, b"origin"),) if expiry.redeliver_to == "origin" else ()

    def headers(
        self, original: Original, wait_id: str, expires_at_ms: int, delivery: int = 1, later: LaterDelivery = _FIRST
    ) -> list[tuple[str, bytes | None]]:
        """Return the headers of one wait record; its value is the original's, or empty when that is null.

        Raises:
            DataError: the record is larger than its readers accept, compressed or not: dead-letter it.
        """
        topic, partition, offset, timestamp_ms, timestamp_type, key, value, originals = original
        headers_json = readable_headers_json(originals) if originals else NO_HEADERS_JSON
        size = len(value or b"") + len(key or b"") + len(headers_json)
        if size > self._max_bytes:
            raise _too_large(size, self._max_bytes)
        encoded: list[tuple[str, bytes | None]] = [
            *_place_headers(topic, partition),
            (header_names.ORIGINAL_OFFSET, b"%d" % offset),
            (header_names.ORIGINAL_TIMESTAMP, b"%d" % timestamp_ms),
            _TYPE_HEADERS[timestamp_type],
            (header_names.ORIGINAL_KEY, key),
            (header_names.ORIGINAL_HEADERS, headers_json),
            _NULL if value is None else _NOT_NULL,
            (header_names.WAIT_EXPIRATION_UUID, wait_id.encode()),
            _expiry_header(expires_at_ms),
            *self._group,
            _delivery_header(delivery),
            *(self._policy if later.max_deliveries is None else self._limited(later.max_deliveries)),
            *self._origin,
        ]
        if later.idempotency_key not in (None, wait_id):
            encoded.append((header_names.WAIT_IDEMPOTENCY_KEY, later.idempotency_key.encode()))
        if later.source is not None:
            encoded += later.source.headers()
        for header in originals:
            # What isn't trace context is not copied; it is in the original headers anyway.
            if header[0] in _TRACE_NAMES and is_trace(header[1]):
                encoded.append(header)
        return encoded

    def _limited(self, max_deliveries: int) -> tuple[tuple[str, bytes], ...]:
        return *self._policy[:-1], (header_names.WAIT_MAX_DELIVERIES, b"%d" % max_deliveries)


@lru_cache(maxsize=1024)
def _place_headers(topic: str, partition: int) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    return (header_names.ORIGINAL_TOPIC, topic.encode()), (header_names.ORIGINAL_PARTITION, b"%d" % partition)


@lru_cache(maxsize=64)
def _expiry_header(expires_at_ms: int) -> tuple[str, bytes]:
    return header_names.WAIT_EXPIRATION_TIME, format_utc_ms(expires_at_ms).encode()


@lru_cache(maxsize=64)
def _delivery_header(delivery: int) -> tuple[str, bytes]:
    return header_names.WAIT_DELIVERY, b"%d" % delivery


def decode_wait_record(
    key: bytes | str | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None
) -> WaitRecord:
    """Read a wait record in this format or the legacy one.

    The legacy format has PARTITION instead of ORIGINAL_PARTITION, ORIGINAL_HEADERS as a JSON object of strings, an
    expiry time without a zone, and requires only ORIGINAL_TOPIC and WAIT_EXPIRATION_TIME. If a header is repeated, the
    last one counts; unknown names are ignored.

    Raises:
        DataError: it isn't a wait record; quarantine it. The message names the header, what was seen and what
            was expected, and holds nothing of key, value or original headers.
    """
    system = SystemHeaders(headers)
    if value is None:
        raise DataError("wait record: saw a null value (a tombstone), expected a value")
    expires_at_ms = system.time_ms(header_names.WAIT_EXPIRATION_TIME)
    if expires_at_ms is None:
        raise missing(header_names.WAIT_EXPIRATION_TIME, "the expiry time")
    return WaitRecord(
        original=_original(system, value),
        wait_id=_wait_id(system, key),
        expires_at_ms=expires_at_ms,
        group=system.text(header_names.WAIT_GROUP),
        instance=system.text(header_names.WAIT_INSTANCE),
        delivery=system.integer(header_names.WAIT_DELIVERY, 1, MAX_INT32),
        dead_letter_topic=system.text(header_names.WAIT_DEAD_LETTER_TOPIC),
        expiry_policy=cast("ExpiryPolicy | None", system.choice(header_names.WAIT_EXPIRY_POLICY, _POLICIES)),
        max_deliveries=system.integer(header_names.WAIT_MAX_DELIVERIES, 1, MAX_INT32),
        redeliver_to=cast("RedeliverTo | None", system.choice(header_names.WAIT_REDELIVER_TO, _REDELIVER_TO)),
        idempotency_key=system.wait_id(header_names.WAIT_IDEMPOTENCY_KEY),
        source=system.source(),
        traceparent=system.trace(header_names.TRACEPARENT),
        tracestate=system.trace(header_names.TRACESTATE),
    )


def _too_large(size: int, limit: int) -> DataError:
    return DataError(
        f"value, key and headers in JSON: saw {size} bytes before any compression, expected at most "
        f"wait.max_message_bytes = {limit}"
    )


def _wait_id(system: SystemHeaders, key: bytes | str | None) -> str:
    try:
        text = key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        text = None
    if text is None or not is_wait_id(text):
        seen = "null" if key is None else f"{len(key)} bytes that aren't one"
        raise DataError(f"wait record's key: saw {seen}, expected a wait ID (canonical lower-case UUID)")
    if system.wait_id(header_names.WAIT_EXPIRATION_UUID) not in (None, text):
        raise unreadable(
            header_names.WAIT_EXPIRATION_UUID, system.raw(header_names.WAIT_EXPIRATION_UUID), f"the key, {text}"
        )
    return text


def _original(system: SystemHeaders, value: bytes) -> Original | PartialOriginal:
    topic = system.text(header_names.ORIGINAL_TOPIC)
    if topic is None:
        raise missing(header_names.ORIGINAL_TOPIC, "the topic that the record came from")
    partition = system.integer(header_names.ORIGINAL_PARTITION, 0, MAX_INT32)
    if partition is None:
        partition = system.integer(header_names.LEGACY_PARTITION, 0, MAX_INT32)
    offset = system.integer(header_names.ORIGINAL_OFFSET, 0, MAX_INT64)
    timestamp_ms = system.integer(header_names.ORIGINAL_TIMESTAMP, -MAX_INT64 - 1, MAX_INT64)
    timestamp_type = cast("TimestampType | None", system.choice(header_names.ORIGINAL_TIMESTAMP_TYPE, _TIMESTAMP_TYPES))
    key = system.raw(header_names.ORIGINAL_KEY)
    headers_json = system.raw(header_names.ORIGINAL_HEADERS)
    headers = () if headers_json is None else _original_headers(headers_json)
    original_value = _original_value(system, value)
    if partition is None or offset is None or timestamp_ms is None or timestamp_type is None:
        return PartialOriginal(topic, partition, offset, timestamp_ms, timestamp_type, key, original_value, headers)
    return Original(topic, partition, offset, timestamp_ms, timestamp_type, key, original_value, headers)


def _original_headers(data: bytes) -> Headers:
    try:
        return decode_headers_json(data)
    except DataError as error:
        raise DataError(f"header {header_names.ORIGINAL_HEADERS}: {error}") from None


def _original_value(system: SystemHeaders, value: bytes) -> bytes | None:
    if system.choice(header_names.ORIGINAL_VALUE_NULL, ("true", "false")) != "true":
        return value
    if value:
        raise DataError(f"header {header_names.ORIGINAL_VALUE_NULL}: saw 'true' with a value of {len(value)} bytes")
    return None
