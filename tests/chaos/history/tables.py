"""What stands in Postgres, read by SQL of our own."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tests.chaos.history.entries import Registration
from tests.chaos.history.headers import UnreadableError, headers_of_json
from tests.chaos.history.rows import DeadLetterRow, ProgressRow, QuarantineRow, Tables, WaitRow
from wait_registry.demo.fingerprint import Fingerprint, fingerprint

Columns = Mapping[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_tables(postgres_url: str, schema: str, answer_s: float = 0.0) -> Tables:
    """Read all of them in one snapshot.

    Args:
        postgres_url: where.
        schema: the schema with the tables.
        answer_s: how long Postgres may take for a connection, and for each table, s; 0: as long as it takes.

    Raises:
        psycopg.Error: no answer.
    """
    wait_s, limit = math.ceil(answer_s), f"-c statement_timeout={answer_s * 1000:.0f}"
    with psycopg.connect(postgres_url, row_factory=dict_row, connect_timeout=wait_s, options=limit) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(schema)))
        return Tables(
            [wait_row(row) for row in connection.execute("select *, original_headers::text as headers from wait")],
            [
                dead_letter_row(row)
                for row in connection.execute("select *, headers::text as headers_json from dead_letter")
            ],
            [
                QuarantineRow((row["topic"], row["partition"], row["offset"]), row["error"])
                for row in connection.execute('select topic, partition, "offset", error from quarantine')
            ],
            [
                ProgressRow(row["topic"], row["partition"], row["next_offset"])
                for row in connection.execute("select topic, partition, next_offset from sink_progress")
            ],
        )


def wait_row(row: Columns) -> WaitRow:
    """Read a row of ``wait``; one that shows no whole registration says why."""
    place = (row["wait_partition"], row["wait_offset"])
    try:
        return WaitRow(row["wait_expiration_uuid"], place, _registration(row))
    except UnreadableError as error:
        return WaitRow(row["wait_expiration_uuid"], place, None, str(error))


def dead_letter_row(row: Columns) -> DeadLetterRow:
    """Read a row of ``dead_letter``."""
    content, unreadable = None, ""
    try:
        content = _content(row["key"], row["body"], row["headers_json"])
    except UnreadableError as error:
        unreadable = str(error)
    registered = row["wait_partition"] is not None and row["wait_offset"] is not None
    return DeadLetterRow(
        place=(row["topic"], row["partition"], row["offset"]),
        content=content,
        reason=row["reason"],
        time_ms=_ms(row["dead_letter_time"]),
        wait_id=row["wait_expiration_uuid"],
        original=_place(row, "original"),
        timestamp_ms=row["original_timestamp_ms"],
        registration=(row["wait_partition"], row["wait_offset"]) if registered else None,
        group=row["consumer_group"],
        instance=row["instance"],
        delivery=row["delivery"],
        finished_late=row["finished_late"],
        unreadable=unreadable,
        timestamp_type=row["original_timestamp_type"],
        error_class=_shared(row["error_class"]),
        error_message=_shared(row["error_message"]),
        error_stacktrace=_shared(row["error_stacktrace"]),
    )


def _registration(row: Columns) -> Registration:
    needed = (
        "original_partition",
        "original_offset",
        "original_timestamp_ms",
        "original_timestamp_type",
        "consumer_group",
        "instance",
        "delivery",
        "dead_letter_topic",
        "expiry_policy",
        "max_deliveries",
    )
    for name in needed:
        if row[name] is None:
            raise UnreadableError(f"column {name} is null")
    original, expires_at_ms = _place(row, "original"), _ms(row["wait_expiration_time"])
    assert original is not None and expires_at_ms is not None
    return Registration(
        original=original,
        timestamp_ms=row["original_timestamp_ms"],
        content=_content(row["original_key"], row["body"], row["headers"]),
        wait_id=row["wait_expiration_uuid"],
        expires_at_ms=expires_at_ms,
        group=row["consumer_group"],
        instance=row["instance"],
        delivery=row["delivery"],
        dead_letter_topic=row["dead_letter_topic"],
        expiry_policy=row["expiry_policy"],
        max_deliveries=row["max_deliveries"],
        source=_place(row, "source"),
        timestamp_type=row["original_timestamp_type"],
    )


def _content(key: bytes | None, body: bytes | None, headers_json: str | None) -> Fingerprint:
    return fingerprint(key, body, headers_of_json(headers_json))


def _shared(text: str | None) -> str | None:
    # The same rows are read again every two seconds of a run, and kept.
    return None if text is None else sys.intern(text)


def _place(row: Columns, prefix: str) -> tuple[str, int, int] | None:
    topic, partition, offset = (row[f"{prefix}_{part}"] for part in ("topic", "partition", "offset"))
    return None if topic is None or partition is None or offset is None else (topic, partition, offset)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)
