"""The lineage block, appended to the original headers of dead letters, retry records and redelivered records.

It begins with WAIT_LINEAGE = the number of original headers, and is valid only if that number is its own index and only
block names follow; otherwise all headers are original. So any original headers are preserved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast, get_args

from wait_registry.errors import DataError
from wait_registry.records import header_names
from wait_registry.records.header_reader import MAX_INT32, MAX_INT64, SystemHeaders, missing
from wait_registry.records.headers import Headers
from wait_registry.records.original import Original, PartialOriginal, Source, TimestampType

_TIMESTAMP_TYPES: Final[tuple[str, ...]] = get_args(TimestampType)


# A named tuple costs a third of a frozen dataclass; one is built per exported record.
class Lineage(NamedTuple):
    """The first delivery of a record and its registration.

    ``wait_partition`` and ``wait_offset`` are None without a registration (such as `unregistrable`), and so are
    fields that the legacy format lacks. ``max_deliveries`` belongs to records that are delivered again: how many
    deliveries there may be until an expired record is dead-lettered, those from retry topics not counted.
    If ``idempotency_key`` is None it is ``wait_id``, as in the first delivery. ``source`` is where a later delivery was
    consumed. No header is written for None.
    """

    original_topic: str
    original_partition: int | None
    original_offset: int | None
    original_timestamp_ms: int | None
    original_timestamp_type: TimestampType | None
    wait_id: str
    wait_partition: int | None
    wait_offset: int | None
    group: str | None
    instance: str | None
    delivery: int | None
    max_deliveries: int | None = None
    idempotency_key: str | None = None
    source: Source | None = None

    @classmethod
    def of(
        cls,
        original: Original | PartialOriginal,
        *,
        wait_id: str,
        wait_partition: int | None,
        wait_offset: int | None,
        group: str | None,
        instance: str | None,
        delivery: int | None,
        max_deliveries: int | None = None,
        idempotency_key: str | None = None,
        source: Source | None = None,
    ) -> Lineage:
        """Return the lineage of an original record and its registration; the key may be ``wait_id`` too."""
        where = (wait_partition, wait_offset)
        key = None if idempotency_key == wait_id else idempotency_key
        return cls(*original[:5], wait_id, *where, group, instance, delivery, max_deliveries, key, source)


def append_lineage(
    original_headers: Sequence[tuple[str, bytes | None]], lineage: Lineage
) -> list[tuple[str, bytes | None]]:
    """Return the original headers, unchanged and in order, followed by the lineage block.

    Args:
        original_headers: without an earlier block of this group, which `consumed` and `split_lineage` cut off.
    """
    topic, partition, offset, timestamp_ms, timestamp_type, wait_id, wait_partition, wait_offset, *by = lineage
    group, instance, delivery, max_deliveries, *_ = by
    key, source = lineage.idempotency_key, lineage.source
    block = (
        _shared(header_names.WAIT_LINEAGE, len(original_headers)),
        _shared(header_names.ORIGINAL_TOPIC, topic),
        _shared(header_names.ORIGINAL_PARTITION, partition),
        _own(header_names.ORIGINAL_OFFSET, offset),
        _own(header_names.ORIGINAL_TIMESTAMP, timestamp_ms),
        _shared(header_names.ORIGINAL_TIMESTAMP_TYPE, timestamp_type),
        (header_names.WAIT_EXPIRATION_UUID, wait_id.encode()),
        _shared(header_names.WAIT_PARTITION, wait_partition),
        _own(header_names.WAIT_OFFSET, wait_offset),
        _shared(header_names.WAIT_GROUP, group),
        _shared(header_names.WAIT_INSTANCE, instance),
        _shared(header_names.WAIT_DELIVERY, delivery),
        _shared(header_names.WAIT_MAX_DELIVERIES, max_deliveries),
        None if key is None else (header_names.WAIT_IDEMPOTENCY_KEY, key.encode()),
    )
    return [*original_headers, *filter(None, block), *(source.headers() if source else ())]


# Headers that many records share are built once, since building them is most of their cost.
@lru_cache(maxsize=1024)
def _shared(name: str, value: str | int | None) -> tuple[str, bytes] | None:
    return None if value is None else (name, str(value).encode())


def _own(name: str, number: int | None) -> tuple[str, bytes] | None:
    return None if number is None else (name, b"%d" % number)


def split_lineage(
    headers: Sequence[tuple[str, bytes | None]] | None,
) -> tuple[Headers, Lineage | None, dict[str, bytes | None]]:
    """Cut the lineage block off a record's headers.

    Returns:
        The original headers, the lineage, and the block's DLQ_* headers by name. All headers, None and nothing when
        there is no valid block, or one whose values can't be read: nothing is ever lost.
    """
    everything = tuple(headers or ())
    start = _block_start(everything)
    if start is None:
        return everything, None, {}
    block = everything[start + 1 :]
    try:
        lineage = _decode(SystemHeaders(block))
    except DataError:
        return everything, None, {}
    return everything[:start], lineage, {name: value for name, value in block if name in header_names.DLQ_NAMES}


def _block_start(headers: Headers) -> int | None:
    """Return the index of the only possible WAIT_LINEAGE: the last, if only block names follow."""
    index = len(headers) - 1
    while index >= 0 and headers[index][0] in header_names.BLOCK_NAMES:
        index -= 1
    return index if index >= 0 and headers[index] == (header_names.WAIT_LINEAGE, b"%d" % index) else None


def _decode(block: SystemHeaders) -> Lineage:
    topic = block.text(header_names.ORIGINAL_TOPIC)
    wait_id = block.wait_id(header_names.WAIT_EXPIRATION_UUID)
    if topic is None or wait_id is None:
        raise missing(
            f"{header_names.ORIGINAL_TOPIC}, {header_names.WAIT_EXPIRATION_UUID}", "both in every lineage block"
        )
    return Lineage(
        original_topic=topic,
        original_partition=block.integer(header_names.ORIGINAL_PARTITION, 0, MAX_INT32),
        original_offset=block.integer(header_names.ORIGINAL_OFFSET, 0, MAX_INT64),
        original_timestamp_ms=block.integer(header_names.ORIGINAL_TIMESTAMP, -MAX_INT64 - 1, MAX_INT64),
        original_timestamp_type=cast(
            "TimestampType | None", block.choice(header_names.ORIGINAL_TIMESTAMP_TYPE, _TIMESTAMP_TYPES)
        ),
        wait_id=wait_id,
        wait_partition=block.integer(header_names.WAIT_PARTITION, 0, MAX_INT32),
        wait_offset=block.integer(header_names.WAIT_OFFSET, 0, MAX_INT64),
        group=block.text(header_names.WAIT_GROUP),
        instance=block.text(header_names.WAIT_INSTANCE),
        delivery=block.integer(header_names.WAIT_DELIVERY, 1, MAX_INT32),
        max_deliveries=block.integer(header_names.WAIT_MAX_DELIVERIES, 1, MAX_INT32),
        idempotency_key=block.wait_id(header_names.WAIT_IDEMPOTENCY_KEY),
        source=block.source(),
    )


def one_more(number: int) -> int:
    """Return the next number of a delivery, or of how many there may be; the largest one that readers take stays."""
    return min(number + 1, MAX_INT32)


def redelivery_headers(
    original_headers: Sequence[tuple[str, bytes | None]], lineage: Lineage
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a redelivered record; key and value are the original's.

    Args:
        original_headers: of the record's first delivery.
        lineage: of the expired registration, with ``delivery`` already the number of the next delivery.

    Raises:
        DataError: group or delivery are unknown (legacy format), so deliveries can't be counted; dead-letter it.
    """
    if lineage.group is None or lineage.delivery is None:
        raise DataError(
            f"redelivery of {lineage.wait_id}: saw group {lineage.group!r} and delivery {lineage.delivery!r}, "
            "expected both to be known"
        )
    return append_lineage(original_headers, lineage)
