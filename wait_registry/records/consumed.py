"""A consumed record: its original, without what this system may have appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wait_registry.records.header_names import BLOCK_NAMES, WAITREG_EDITED
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage, split_lineage
from wait_registry.records.original import Original, Source, TimestampType
from wait_registry.records.topics import input_of
from wait_registry.records.wait_id import wait_id


class Consumed(NamedTuple):
    """The record of the first delivery, where it was consumed now if elsewhere, and the number of the delivery.

    ``max_deliveries`` is None if its lineage doesn't say. ``foreign`` is whether another group's record was put into
    this group's topic. ``named_key`` is the idempotency key that its lineage names, not checked yet.
    """

    original: Original
    source: Source | None
    delivery: int
    max_deliveries: int | None = None
    foreign: bool = False
    named_key: str | None = None


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
    input_topic: str,
    redelivered_to_origin: bool = False,
) -> Consumed:
    """Cut the lineage block off a record that this system delivers to this group again.

    The block of a record from an input topic is provenance only, unless records are redelivered there, and so is one
    that can't be read or names another input: else those who may write there could give a record the identity of
    another. Its headers stay with the record, and this counts as the first delivery. The block may name a retry or
    redelivery topic of the input: another program put the record there, so that was its first delivery.

    Args:
        group: the consumer group that consumes.
        input_topic: to which the consumed topic belongs, or which it is.
        redelivered_to_origin: whether records are redelivered to input topics.
    """
    own_topic = topic != input_topic
    if headers and (own_topic or redelivered_to_origin) and may_end_with_lineage(headers):
        originals, lineage, _ = split_lineage(headers)
        if lineage is not None and lineage.group and _names(lineage, input_topic, own_topic):
            now = Original(topic, partition, offset, timestamp_ms, timestamp_type, key, value, originals)
            if lineage.group == group:
                source, delivery = Source(topic, partition, offset), lineage.delivery or 1
                first, most = _first_delivery(now, lineage), lineage.max_deliveries
                return Consumed(first, source, delivery, most, named_key=lineage.idempotency_key)
            if own_topic:
                return Consumed(now, None, 1, foreign=True)
    everything: Headers = tuple(headers or ())
    return Consumed(Original(topic, partition, offset, timestamp_ms, timestamp_type, key, value, everything), None, 1)


def idempotency_key(cluster_id: str, group: str, original: Original, named: str | None) -> str:
    """Return the idempotency key of a later delivery: the wait ID of the first one, or the key of its edit.

    A producer may send a header WAITREG_EDITED, too, so the header alone says nothing. It counts if the lineage block
    names the key that follows from it, as the block of an edited record does in each of its deliveries.

    Args:
        original: the record of the first delivery.
        named: the key that its lineage block names.
    """
    topic, partition, offset, timestamp_ms, _, _, _, headers = original
    first = (cluster_id, (topic, partition, offset), group, timestamp_ms)
    if named is not None and headers and headers[-1][0] == WAITREG_EDITED and wait_id(*first, headers[-1][1]) == named:
        return named
    return wait_id(*first)


def may_end_with_lineage(headers: Sequence[tuple[str, bytes | None]]) -> bool:
    """Return whether the headers of a record, at least one, may end with a lineage block; almost none do."""
    return headers[-1][0] in BLOCK_NAMES


def _names(lineage: Lineage, input_topic: str, own_topic: bool) -> bool:
    first = lineage.original_topic
    return first == input_topic or (own_topic and input_of(first, lineage.group or "") == input_topic)


def _first_delivery(now: Original, lineage: Lineage) -> Original:
    partition, offset = lineage.original_partition, lineage.original_offset
    timestamp_ms, timestamp_type = lineage.original_timestamp_ms, lineage.original_timestamp_type
    if partition is None or offset is None or timestamp_ms is None or timestamp_type is None:
        return now  # first registered in the legacy format, which lacks some fields
    return Original(
        lineage.original_topic, partition, offset, timestamp_ms, timestamp_type, now.key, now.value, now.headers
    )
