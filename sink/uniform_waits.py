"""Wait records that have all headers of a registration, read a header at a time instead of a record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from sink.batch import HEADERS, KEY, VALUE
from sink.compaction import CANONICAL_ID
from sink.header_values import UTC_MS, times_ms
from wait_registry.errors import DataError
from wait_registry.records import names
from wait_registry.records.headers import MAX_JSON_BYTES
from wait_registry.records.original import TimestampType
from wait_registry.records.system_headers import MAX_INT32, SystemHeaders
from wait_registry.records.wait_record import ExpiryPolicy

# From one header's values to a column, null wherever the record's own decoder must decide.
Reading: TypeAlias = Callable[[pa.Array], pa.Array]

# A layout costs some ms, as much as a hundred records that are read one by one.
MAX_LAYOUTS: Final = 8
# Header names may hold it, but not those that are looked for.
_BETWEEN_NAMES: Final = "\0"

# As much as a tracestate should hold (W3C Trace Context, section 3.3.1.5): more may be taken, but not here.
_MAX_TRACE_BYTES: Final = 512
_VISIBLE: Final = "^[ -~]+$"
# Eighteen digits fit in an int64 whatever they are.
_NATURAL: Final = "^(?:0|[1-9][0-9]{0,17})$"
_INTEGER: Final = "^(?:0|-?[1-9][0-9]{0,17})$"

# What is its own encoding: no blanks, no escapes, valid UTF-8 (The Unicode Standard, table 3-7), canonical base64
# (RFC 4648, section 3.5). Of bytes, not of characters.
_CHARACTER: Final = (
    r"[\x20\x21\x23-\x5b\x5d-\x7e]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    r"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
_PAIR: Final = rf'\["(?:{_CHARACTER})*",(?:null|"{_BASE64}")\]'
_HEADERS_JSON: Final = rf"^\[(?:{_PAIR}(?:,{_PAIR})*)?\]$"


@dataclass(frozen=True, slots=True)
class UniformWaits:
    """Records that can be read beyond doubt: which rows they are, and what their rows of the table ``wait`` hold.

    ``columns`` are by name: key, value and headers as the table ``wait`` has them, without what the record's place and
    the range of a timestamptz make of it.
    """

    rows: pa.Array
    columns: Mapping[str, pa.Array]


def uniform_waits(records: pa.RecordBatch, expiries_ms: range) -> tuple[list[UniformWaits], pa.Array]:
    """Read the ordinary wait records among these, layout by layout: records with one sequence of header names.

    Nothing here raises for bad data, and nothing is refused: a record with anything out of the ordinary is left over.

    Args:
        records: columns of `sink.batch.SCHEMA`.
        expiries_ms: expiry times that may be shown, ms since the epoch; a record with any other is left over.

    Returns:
        What was read, and the rows (ascending) of the records that are left for `decode_wait_record` to decide on.
    """
    found = [
        _read(records, rows, layout, expiries_ms)
        for layout, rows in _layouts(records.column(HEADERS))
        if _is_readable(layout)
    ]
    seen = pa.concat_arrays([pa.nulls(0, pa.uint64()), *(waits.rows for waits in found)])
    everything = pa.array(range(len(records)), pa.uint64())
    return found, everything.filter(pc.invert(pc.is_in(everything, seen)))


def _layouts(headers: pa.ListArray) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    """Yield the commonest sequences of header names, each with the rows that have it."""
    of_record = pa.ListArray.from_arrays(headers.offsets, headers.values.field("key"))
    joined = pc.binary_join(of_record, _BETWEEN_NAMES)
    lengths = pc.list_value_length(headers)
    counted = pc.value_counts(joined)
    for text in counted.take(pc.top_k_unstable(counted.field("counts"), MAX_LAYOUTS)).field("values").to_pylist():
        if text is not None:
            layout = tuple(text.split(_BETWEEN_NAMES))
            # With as many headers as there are names, none of the names holds what separates them here.
            yield layout, pc.indices_nonzero(pc.and_(pc.equal(joined, text), pc.equal(lengths, len(layout))))


def _is_readable(layout: tuple[str, ...]) -> bool:
    """Tell whether these are all headers of a registration, each once; foreign ones beside them don't count."""
    known = set(layout)
    sources = known & {name for _, name, _ in _SOURCE}
    is_whole = known >= _REQUIRED and len(sources) in (0, len(_SOURCE))
    return is_whole and len(known) == len(layout) and names.LEGACY_PARTITION not in known


def _read(records: pa.RecordBatch, rows: pa.Array, layout: tuple[str, ...], expiries_ms: range) -> UniformWaits:
    keys, bodies = (_rows_of(records.column(name), rows) for name in (KEY, VALUE))
    headers = records.column(HEADERS)
    starts, values = headers.offsets.take(rows), headers.values.field("value")
    # Elements of an array, since a number of Python's is made a scalar only after a look for pandas: 60 us each.
    positions = pa.array(range(len(layout)), pa.int32())

    def raw(name: str) -> pa.Array:
        return values.take(pc.add(starts, positions[layout.index(name)]))

    required = {column: read(raw(name)) for column, name, read in _HEADERS if name in layout}
    is_null = _VALUE_NULL(raw(names.ORIGINAL_VALUE_NULL))
    sure = [
        pc.match_substring_regex(keys, CANONICAL_ID),
        pc.equal(keys, raw(names.WAIT_EXPIRATION_UUID)),
        _is_within(required["wait_expiration_time"], expiries_ms),
        # Null, and so not sure, where there is no value at all.
        pc.or_(pc.invert(is_null), pc.equal(pc.binary_length(bodies), 0)),
        *(column.is_valid() for column in required.values()),
    ]
    columns = required | {
        "wait_expiration_uuid": keys,
        "original_key": raw(names.ORIGINAL_KEY),
        "body": _where(pc.invert(is_null), bodies),
    }
    return _only(UniformWaits(rows, columns), pc.fill_null(reduce(pc.and_, sure), False))


def _rows_of(column: pa.Array, rows: pa.Array) -> pa.Array:
    return column if len(rows) == len(column) else column.take(rows)


def _is_within(numbers: pa.Array, bounds: range) -> pa.Array:
    return pc.and_(pc.greater_equal(numbers, bounds.start), pc.less(numbers, bounds.stop))


def _only(waits: UniformWaits, wanted: pa.Array) -> UniformWaits:
    if pc.all(wanted).as_py():
        return waits
    return UniformWaits(
        waits.rows.filter(wanted), {name: column.filter(wanted) for name, column in waits.columns.items()}
    )


def _each_value(kind: pa.DataType, read: Callable[[SystemHeaders, str], Any]) -> Reading:
    """Read as a record's decoder does, but each distinct value once: most records share most of what they hold."""

    def column(values: pa.Array) -> pa.Array:
        encoded = values.dictionary_encode()
        readings = [_reading(read, value) for value in encoded.dictionary.to_pylist()]
        return pa.array(readings, kind).take(encoded.indices)

    return column


def _reading(read: Callable[[SystemHeaders, str], Any], value: bytes) -> Any:
    try:
        return read(SystemHeaders((("", value),)), "")
    except DataError:
        return None


def _matching(values: pa.Array, pattern: str) -> pa.Array:
    return _where(pc.match_substring_regex(values, pattern), values)


def _within_bytes(values: pa.Array, max_bytes: int) -> pa.Array:
    return _where(pc.less_equal(pc.binary_length(values), max_bytes), values)


def _where(wanted: pa.Array, values: pa.Array) -> pa.Array:
    # To replace some is to copy all: hardly ever is there anything to replace.
    return values if pc.all(wanted, skip_nulls=False).as_py() else pc.if_else(wanted, values, None)


def _number(pattern: str) -> Reading:
    """Read numbers that hardly two records share."""
    return lambda values: _matching(values, pattern).cast(pa.string()).cast(pa.int64())


def _time(values: pa.Array) -> pa.Array:
    return times_ms(_matching(values, UTC_MS).cast(pa.string()))


def _trace(values: pa.Array) -> pa.Array:
    return _matching(_within_bytes(values, _MAX_TRACE_BYTES), _VISIBLE).cast(pa.string())


def _headers_json(values: pa.Array) -> pa.Array:
    return _matching(_within_bytes(values, MAX_JSON_BYTES), _HEADERS_JSON)


def _choice(type_: Any) -> Reading:
    return _each_value(pa.string(), partial(SystemHeaders.choice, allowed=get_args(type_)))


def _integer(headers: SystemHeaders, name: str, low: int) -> int | None:
    number = headers.integer(name, low, MAX_INT32)
    return number if number is not None and headers.raw(name) == b"%d" % number else None


def _is_true(headers: SystemHeaders, name: str) -> bool:
    return headers.choice(name, ("true", "false")) == "true"


_TEXT: Final = _each_value(pa.string(), SystemHeaders.text)
_PARTITION: Final = _each_value(pa.int32(), partial(_integer, low=0))
_COUNT: Final = _each_value(pa.int32(), partial(_integer, low=1))
_VALUE_NULL: Final = _each_value(pa.bool_(), _is_true)

# Column, header and reading: of what may be missing there is either all or nothing.
_SOURCE: Final = (
    ("source_topic", names.SOURCE_TOPIC, _TEXT),
    ("source_partition", names.SOURCE_PARTITION, _PARTITION),
    ("source_offset", names.SOURCE_OFFSET, _number(_NATURAL)),
)
_REGISTRATION: Final = (
    ("original_topic", names.ORIGINAL_TOPIC, _TEXT),
    ("original_partition", names.ORIGINAL_PARTITION, _PARTITION),
    ("original_offset", names.ORIGINAL_OFFSET, _number(_NATURAL)),
    ("original_timestamp_ms", names.ORIGINAL_TIMESTAMP, _number(_INTEGER)),
    ("original_timestamp_type", names.ORIGINAL_TIMESTAMP_TYPE, _choice(TimestampType)),
    ("original_headers", names.ORIGINAL_HEADERS, _headers_json),
    ("wait_expiration_time", names.WAIT_EXPIRATION_TIME, _time),
    ("consumer_group", names.WAIT_GROUP, _TEXT),
    ("instance", names.WAIT_INSTANCE, _TEXT),
    ("delivery", names.WAIT_DELIVERY, _COUNT),
    ("dead_letter_topic", names.WAIT_DEAD_LETTER_TOPIC, _TEXT),
    ("expiry_policy", names.WAIT_EXPIRY_POLICY, _choice(ExpiryPolicy)),
    ("max_deliveries", names.WAIT_MAX_DELIVERIES, _COUNT),
)
_TRACE: Final = (("traceparent", names.TRACEPARENT, _trace), ("tracestate", names.TRACESTATE, _trace))
_HEADERS: Final = (*_REGISTRATION, *_SOURCE, *_TRACE)
_REQUIRED: Final = {name for _, name, _ in _REGISTRATION} | {
    names.ORIGINAL_KEY,
    names.ORIGINAL_VALUE_NULL,
    names.WAIT_EXPIRATION_UUID,
}
