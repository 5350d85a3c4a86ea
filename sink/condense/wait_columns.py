"""Wait records decoded by columns: what records share is decoded once, by the codec of `wait_registry.records`.

What is out of the ordinary is left to `sink.condense.wait_rows`, which decodes record by record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from sink.condense.header_values import HeaderColumns, as_text, times_ms
from sink.position import SHOWABLE_MS
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TOPIC, VALUE
from wait_registry.errors import DataError
from wait_registry.records import header_names
from wait_registry.records.header_reader import MAX_INT32, MAX_TRACE_BYTES, SystemHeaders
from wait_registry.records.headers import decode_headers_json, encode_headers_json
from wait_registry.records.original import TimestampType
from wait_registry.records.wait_record import ExpiryPolicy, RedeliverTo

Reader: TypeAlias = Callable[[SystemHeaders, str], Any]

# A number of 18 digits fits into 64 bits.
_DIGITS: Final = 18


def _choice_of(alias: Any) -> Reader:
    words = get_args(alias)
    return lambda headers, name: headers.choice(name, words)


def _from(low: int) -> Reader:
    return lambda headers, name: headers.integer(name, low, MAX_INT32)


def _original_headers(headers: SystemHeaders, name: str) -> bytes | None:
    value = headers.raw(name)
    return None if value is None else encode_headers_json(decode_headers_json(value))


# Columns whose values many records share: the header of each, how it is read, and the column's type.
_SHARED: Final[dict[str, tuple[str, Reader, pa.DataType]]] = {
    "original_topic": (header_names.ORIGINAL_TOPIC, SystemHeaders.text, pa.string()),
    "original_partition": (header_names.ORIGINAL_PARTITION, _from(0), pa.int32()),
    "original_timestamp_type": (header_names.ORIGINAL_TIMESTAMP_TYPE, _choice_of(TimestampType), pa.string()),
    "original_headers": (header_names.ORIGINAL_HEADERS, _original_headers, pa.binary()),
    "consumer_group": (header_names.WAIT_GROUP, SystemHeaders.text, pa.string()),
    "instance": (header_names.WAIT_INSTANCE, SystemHeaders.text, pa.string()),
    "delivery": (header_names.WAIT_DELIVERY, _from(1), pa.int32()),
    "dead_letter_topic": (header_names.WAIT_DEAD_LETTER_TOPIC, SystemHeaders.text, pa.string()),
    "expiry_policy": (header_names.WAIT_EXPIRY_POLICY, _choice_of(ExpiryPolicy), pa.string()),
    "max_deliveries": (header_names.WAIT_MAX_DELIVERIES, _from(1), pa.int32()),
    "redeliver_to": (header_names.WAIT_REDELIVER_TO, _choice_of(RedeliverTo), pa.string()),
    "idempotency_key": (header_names.WAIT_IDEMPOTENCY_KEY, SystemHeaders.wait_id, pa.string()),
    "source_topic": (header_names.SOURCE_TOPIC, SystemHeaders.text, pa.string()),
    "source_partition": (header_names.SOURCE_PARTITION, _from(0), pa.int32()),
}
_OWN: Final = (
    header_names.ORIGINAL_OFFSET,
    header_names.ORIGINAL_TIMESTAMP,
    header_names.ORIGINAL_VALUE_NULL,
    header_names.WAIT_EXPIRATION_UUID,
    header_names.WAIT_EXPIRATION_TIME,
    header_names.SOURCE_OFFSET,
)
# The key may be null, and so may what only copies an original header.
_NOT_NULL: Final = pa.array([*_OWN, *(name for name, _, _ in _SHARED.values())], pa.string())


class PlainWaits:
    """The survivors of one record batch, decoded by columns.

    Attributes:
        columns: those of the table ``wait``, by name.
        is_plain: marks the records that were decoded; what the columns have of others means nothing.
    """

    def __init__(self, part: pa.RecordBatch) -> None:
        self._headers = HeaderColumns(part[HEADERS])
        self.is_plain = pc.invert(self._headers.have_null(_NOT_NULL))
        shared = {name: self._shared(*how) for name, how in _SHARED.items()}
        timestamp_ms = self._number(header_names.ORIGINAL_TIMESTAMP)
        self.columns: dict[str, Any] = {
            **shared,
            "wait_expiration_uuid": self._wait_id(part[KEY]),
            "original_offset": self._number(header_names.ORIGINAL_OFFSET),
            "original_key": self._headers.bytes_of(header_names.ORIGINAL_KEY),
            "original_timestamp_ms": timestamp_ms,
            "original_timestamp": _null_unless(pc.less_equal(timestamp_ms, SHOWABLE_MS[-1]), timestamp_ms),
            "body": self._body(part[VALUE]),
            "wait_expiration_time": self._expiry(),
            "wait_topic": part[TOPIC],
            "wait_partition": part[PARTITION],
            "wait_offset": part[OFFSET],
            "source_offset": self._number(header_names.SOURCE_OFFSET),
            "traceparent": self._trace(header_names.TRACEPARENT),
            "tracestate": self._trace(header_names.TRACESTATE),
        }
        self._complete()

    def _require(self, holds: pa.Array) -> None:
        """Leave records out for which a condition doesn't hold, or isn't known."""
        self.is_plain = pc.and_(self.is_plain, pc.fill_null(holds, False))

    def _complete(self) -> None:
        columns = self.columns
        # The legacy format has the partition under another name, and a source is whole.
        for name in ("original_topic", "original_partition"):
            self._require(columns[name].is_valid())
        has_source = columns["source_offset"].is_valid()
        for name in ("source_topic", "source_partition"):
            self._require(pc.equal(columns[name].is_valid(), has_source))
        for name, instead in (("original_headers", b"[]"), ("idempotency_key", columns["wait_expiration_uuid"])):
            if columns[name].null_count:
                columns[name] = pc.fill_null(columns[name].dictionary_decode(), instead)

    def _shared(self, name: str, read: Reader, kind: pa.DataType) -> pa.DictionaryArray:
        """Return a column whose values are read once each."""
        encoded = pc.dictionary_encode(self._headers.bytes_of(name))
        values: list[Any] = []
        unreadable: list[int] = []
        for code, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                values.append(read(SystemHeaders(((name, value),)), name))
            except DataError:
                values.append(None)
                unreadable.append(code)
        if unreadable:
            self._require(pc.invert(pc.is_in(encoded.indices, pa.array(unreadable, encoded.indices.type))))
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(values, kind))

    def _number(self, name: str) -> pa.Array:
        """Return a column of numbers that each record has its own of, null where there is none."""
        values = self._headers.bytes_of(name)
        text = as_text(values)
        fits = pc.and_(pc.ascii_is_decimal(text), pc.less_equal(pc.binary_length(text), _DIGITS))
        self._require(pc.or_(pc.is_null(values), pc.fill_null(fits, False)))
        return pc.cast(_null_unless(fits, text), pa.int64())

    def _wait_id(self, keys: pa.Array) -> pa.Array:
        said = self._headers.bytes_of(header_names.WAIT_EXPIRATION_UUID)
        self._require(pc.or_(pc.is_null(said), pc.fill_null(pc.equal(said, keys), False)))
        return pc.cast(keys, pa.string())

    def _body(self, values: pa.Array) -> pa.Array:
        null = self._shared(header_names.ORIGINAL_VALUE_NULL, _read_flag, pa.bool_())
        is_null = pc.fill_null(null.dictionary_decode(), False)
        self._require(pc.or_(pc.invert(is_null), pc.equal(pc.binary_length(values), 0)))
        return _null_unless(pc.invert(is_null), values)

    def _expiry(self) -> pa.Array:
        encoded = pc.dictionary_encode(self._headers.bytes_of(header_names.WAIT_EXPIRATION_TIME))
        moments = times_ms(as_text(encoded.dictionary)).take(encoded.indices)
        self._require(moments.is_valid())
        return moments

    def _trace(self, name: str) -> pa.Array:
        text = as_text(self._headers.bytes_of(name))
        length = pc.binary_length(text)
        is_short = pc.and_(pc.greater(length, 0), pc.less_equal(length, MAX_TRACE_BYTES))
        is_trace = pc.and_(pc.and_(pc.string_is_ascii(text), pc.ascii_is_printable(text)), is_short)
        return _null_unless(is_trace, text)


def _read_flag(headers: SystemHeaders, name: str) -> bool:
    return headers.choice(name, ("true", "false")) == "true"


def _null_unless(holds: pa.Array, values: pa.Array) -> pa.Array:
    if holds.null_count == 0 and pc.all(holds).as_py():
        return values
    return pc.if_else(pc.fill_null(holds, False), values, pa.scalar(None, values.type))
