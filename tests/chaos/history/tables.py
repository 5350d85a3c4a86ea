"""The tables in Postgres, read by SQL of our own at the end of a run and during it."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tests.chaos.companion import Companion
from tests.chaos.history.entries import Registration, Republished, TopicRecord
from tests.chaos.history.history import DeadLetterRow, ProgressRow, QuarantineRow, Tables, WaitRow
from wait_registry.errors import DataError
from wait_registry.records.headers import decode_headers_json
from wait_registry.settings.tree import Settings
from waitreg.load.manifest import Fingerprint, fingerprint

Columns = Mapping[str, Any]
ANSWER_S = 5.0
_COMMON = """
    original_timestamp_ms as timestamp_ms, original_timestamp_type as timestamp_type,
    wait_expiration_uuid as wait_id, consumer_group as "group"
"""
WAIT = f"""
select *, original_headers::text as headers_json,
    floor(extract(epoch from wait_expiration_time) * 1000)::bigint as expires_at_ms, {_COMMON}
from wait
"""
DEAD_LETTER = f"""
select *, headers::text as headers_json,
    floor(extract(epoch from dead_letter_time) * 1000)::bigint as time_ms, {_COMMON}
from dead_letter
"""
_OF_BOTH = ("timestamp_ms", "timestamp_type", "group", "instance", "delivery", "idempotency_key")
_OF_WAIT = (*_OF_BOTH, "dead_letter_topic", "expiry_policy", "max_deliveries", "expires_at_ms")
_OF_LETTER = (*_OF_BOTH, "wait_id", "reason", "time_ms")
_TEXTS = ("error_class", "error_message", "error_stacktrace")


class Snapshots(Companion):
    """Reads the tables in a thread of its own, as often as Postgres answers; a context manager."""

    def __init__(self, settings: Settings, interval_s: float = 2.0) -> None:
        self.taken: list[Tables] = []
        self._settings = settings
        super().__init__("snapshots", interval_s, self._take)

    def _take(self) -> None:
        # Faults stop Postgres and end its sessions.
        with suppress(psycopg.Error):
            self.taken.append(read_tables(self._settings, ANSWER_S))


def read_tables(settings: Settings, answer_s: float = 0.0) -> Tables:
    """Read the tables in one snapshot; raise psycopg.Error without an answer within ``answer_s`` (0: wait for it)."""
    url, schema = settings.postgres.url.get_secret_value(), settings.postgres.schema_name
    options: dict[str, Any] = {
        "connect_timeout": math.ceil(answer_s),
        "options": f"-c statement_timeout={answer_s * 1000:.0f}",
    }
    at_ms = time.time_ns() // 1_000_000
    with psycopg.connect(url, row_factory=dict_row, **options) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(schema)))
        quarantined = connection.execute('select topic, partition, "offset", error from quarantine')
        progress = connection.execute("select topic, partition, next_offset from sink_progress")
        return Tables(
            [_wait_row(row) for row in connection.execute(WAIT)],
            [_letter_row(row) for row in connection.execute(DEAD_LETTER)],
            [QuarantineRow((row["topic"], row["partition"], row["offset"]), row["error"]) for row in quarantined],
            [ProgressRow(**row) for row in progress],
            at_ms,
        )


def _wait_row(row: Columns) -> WaitRow:
    wait_id = row["wait_id"]
    for column in ("original_topic", "original_partition", "original_offset", *_OF_WAIT):
        if row[column] is None:
            return WaitRow(wait_id, None, f"{column} is null")
    try:
        content = _content(row["original_key"], row["body"], row["headers_json"])
    except DataError as error:
        return WaitRow(wait_id, None, str(error))
    where = (row["wait_partition"], row["wait_offset"], 0, wait_id, True)
    fields: dict[str, Any] = {name: row[name] for name in _OF_WAIT}
    fields |= {"original": _place(row, "original"), "source": _place(row, "source")}
    return WaitRow(wait_id, Registration(*where, content=content, **fields))


def _letter_row(row: Columns) -> DeadLetterRow:
    content, unreadable = None, ""
    try:
        content = _content(row["key"], row["body"], row["headers_json"])
    except DataError as error:
        unreadable = str(error)
    where = (row["topic"], row["partition"], row["offset"], 0, True, content)
    if row["reason"] is None:
        return DeadLetterRow(TopicRecord(*where), row["finished_late"], unreadable)
    registered = row["wait_partition"] is not None and row["wait_offset"] is not None
    # The same rows are read every two seconds of a run, and kept.
    fields: dict[str, Any] = {name: row[name] and sys.intern(row[name]) for name in _TEXTS}
    fields |= {name: row[name] for name in _OF_LETTER}
    fields["original"] = _place(row, "original")
    fields["registration"] = (row["wait_partition"], row["wait_offset"]) if registered else None
    return DeadLetterRow(Republished(*where, **fields), row["finished_late"], unreadable)


def _content(key: bytes | None, body: bytes | None, headers_json: str | None) -> Fingerprint:
    return fingerprint(key, body, decode_headers_json((headers_json or "").encode()))


def _place(row: Columns, prefix: str) -> tuple[str, int, int] | None:
    topic, partition, offset = (row[f"{prefix}_{part}"] for part in ("topic", "partition", "offset"))
    return None if topic is None or partition is None or offset is None else (topic, partition, offset)
