"""The due rows of the tables: which partitions have any, and what each row holds. The clock of Postgres decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from wait_registry.postgres.queries import Queries
from wait_registry.records.headers import MAX_JSON_BYTES, decode_headers_json
from wait_registry.records.original import Original, PartialOriginal, Source
from wait_registry.records.wait_record import WaitRecord
from wait_registry.settings.tree import Settings

QUERIES = Queries("sweeper")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
# Postgres prints the headers longer than a wait record holds them: base64 for the strings of the legacy format and for
# names with NUL, a blank after each comma and colon. The text grows to less than twice its size.
MAX_ROW_JSON_BYTES = 2 * MAX_JSON_BYTES


@dataclass(frozen=True, slots=True)
class Due:
    """The wait topic's partitions that have due rows, the number of these rows, and the expiry of the oldest."""

    partitions: tuple[int, ...]
    rows: int
    oldest: datetime | None


def find_due(connection: psycopg.Connection[TupleRow], settings: Settings, partitions: int) -> Due:
    """Ask which partitions have due rows.

    Args:
        connection: in autocommit.
        settings: wait topic and skew allowance (a row is due that long after its expiry).
        partitions: number of partitions of the wait topic.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s, "partitions": partitions}
    found = connection.execute(QUERIES["due_partitions"], question).fetchall()
    if not found:
        return Due((), 0, None)
    due = tuple(partition for partition, _ in found)
    counted = connection.execute(QUERIES["due_count"], {**question, "partitions": list(due)}).fetchone()
    return Due(due, counted[0] if counted else 0, min(expired for _, expired in found))


class DueKey(NamedTuple):
    """What is needed to judge a due row: its wait ID, the offset of its wait record, its size in bytes."""

    wait_id: str
    wait_offset: int
    size: int


class DueRow(NamedTuple):
    """A registration and its position in the wait topic."""

    record: WaitRecord
    wait_partition: int
    wait_offset: int


def due_row(columns: Mapping[str, Any]) -> DueRow:
    """Read a row of the query ``due_rows``.

    Raises:
        DataError: its headers can't be read; the row is unsendable.
    """
    policy, target = columns["expiry_policy"], columns["redeliver_to"]
    source = (columns["source_topic"], columns["source_partition"], columns["source_offset"])
    record = WaitRecord(
        original=_original(columns),
        wait_id=columns["wait_expiration_uuid"],
        expires_at_ms=(columns["wait_expiration_time"] - EPOCH) // MS,
        group=columns["consumer_group"],
        instance=columns["instance"],
        delivery=columns["delivery"],
        dead_letter_topic=columns["dead_letter_topic"],
        expiry_policy=policy if policy in ("dlq", "redeliver") else None,
        max_deliveries=columns["max_deliveries"],
        redeliver_to=target if target in ("group", "origin") else None,
        idempotency_key=columns["idempotency_key"],
        source=None if None in source else Source(*source),
    )
    return DueRow(record, columns["wait_partition"], columns["wait_offset"])


def _original(columns: Mapping[str, Any]) -> Original | PartialOriginal:
    topic, partition, offset = columns["original_topic"], columns["original_partition"], columns["original_offset"]
    timestamp_ms, timestamp_type = columns["original_timestamp_ms"], columns["original_timestamp_type"]
    headers_json = columns["original_headers"]
    headers = () if headers_json is None else decode_headers_json(headers_json.encode(), MAX_ROW_JSON_BYTES)
    complete = None not in (partition, offset, timestamp_ms, timestamp_type)
    return (Original if complete else PartialOriginal)(
        topic, partition, offset, timestamp_ms, timestamp_type, columns["original_key"], columns["body"], headers
    )
