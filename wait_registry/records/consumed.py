"""A record as it was consumed: its original, cut out of what this system may have appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage, split_lineage
from wait_registry.records.names import BLOCK_NAMES
from wait_registry.records.original import Original, Source, TimestampType


class Consumed(NamedTuple):
    """What to work on: the first delivery's record, where it was consumed now if that is elsewhere, which delivery."""

    original: Original
    source: Source | None
    delivery: int


def consumed(
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int,
    timestamp_type: TimestampType,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] | None,
    group: str,
) -> Consumed:
    """Cut the lineage block of this group off a consumed record.

    A block of another group is provenance only: its headers stay with the record, which counts as delivered first here.
    So does a block that can't be read.

    :param group: the consumer group that consumes.
    """
    if not headers:
        return Consumed(Original(topic, partition, offset, timestamp_ms, timestamp_type, key, value, ()), None, 1)
    # A block ends in one of its names: this spares the search for almost every record.
    if headers[-1][0] in BLOCK_NAMES:
        originals, lineage, _ = split_lineage(headers)
        if lineage is not None and lineage.group == group:
            now = Original(topic, partition, offset, timestamp_ms, timestamp_type, key, value, originals)
            return Consumed(_first_delivery(now, lineage), Source(topic, partition, offset), lineage.delivery or 1)
    everything: Headers = tuple(headers)
    return Consumed(Original(topic, partition, offset, timestamp_ms, timestamp_type, key, value, everything), None, 1)


def _first_delivery(now: Original, lineage: Lineage) -> Original:
    partition, offset = lineage.original_partition, lineage.original_offset
    timestamp_ms, timestamp_type = lineage.original_timestamp_ms, lineage.original_timestamp_type
    if partition is None or offset is None or timestamp_ms is None or timestamp_type is None:
        return now  # registered first in the older dialect, which doesn't say all
    return Original(
        lineage.original_topic, partition, offset, timestamp_ms, timestamp_type, now.key, now.value, now.headers
    )
