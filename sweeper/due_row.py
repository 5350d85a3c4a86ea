"""A due row of the view: a registration whose time is up, with all it takes to publish its record again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from wait_registry.records.headers import MAX_JSON_BYTES, decode_headers_json
from wait_registry.records.original import Original, PartialOriginal
from wait_registry.records.wait_record import WaitRecord

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What a wait record may say becomes longer in the table: base64 for the older dialect's strings and for names with NUL,
# a blank behind each comma and colon. It hardly doubles.
MAX_ROW_JSON_BYTES = 2 * MAX_JSON_BYTES


@dataclass(frozen=True, slots=True)
class DueKey:
    """What is needed to judge a due row: its id, the offset of its wait record, its size in bytes."""

    wait_id: str
    wait_offset: int
    size: int


class DueRow(NamedTuple):
    """A registration and where it stands in the wait topic."""

    record: WaitRecord
    wait_partition: int
    wait_offset: int


def due_row(columns: Mapping[str, Any]) -> DueRow:
    """Read a row of the query ``due_rows``.

    Raises:
        DataError: its headers can't be read; set the row aside.
    """
    policy = columns["expiry_policy"]
    record = WaitRecord(
        original=_original(columns),
        wait_id=columns["wait_expiration_uuid"],
        expires_at_ms=(columns["wait_expiration_time"] - EPOCH) // timedelta(milliseconds=1),
        group=columns["consumer_group"],
        instance=columns["instance"],
        delivery=columns["delivery"],
        dead_letter_topic=columns["dead_letter_topic"],
        expiry_policy=policy if policy in ("dlq", "redeliver") else None,
        max_deliveries=columns["max_deliveries"],
    )
    return DueRow(record, columns["wait_partition"], columns["wait_offset"])


def _original(columns: Mapping[str, Any]) -> Original | PartialOriginal:
    topic, partition, offset = (columns[f"original_{name}"] for name in ("topic", "partition", "offset"))
    timestamp_ms, timestamp_type = columns["original_timestamp_ms"], columns["original_timestamp_type"]
    headers_json = columns["original_headers"]
    headers = () if headers_json is None else decode_headers_json(headers_json.encode(), MAX_ROW_JSON_BYTES)
    complete = None not in (partition, offset, timestamp_ms, timestamp_type)
    return (Original if complete else PartialOriginal)(
        topic, partition, offset, timestamp_ms, timestamp_type, columns["original_key"], columns["body"], headers
    )
