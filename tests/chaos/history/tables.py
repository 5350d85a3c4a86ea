"""The tables in Postgres, read by SQL of our own, once or again and again while a run continues."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tests.chaos.companion import Companion
from tests.chaos.history.entries import Registration
from tests.chaos.history.history import DeadLetterRow, ProgressRow, QuarantineRow, Tables, View, WaitRow
from wait_registry.demo.manifest import Fingerprint, fingerprint
from wait_registry.errors import DataError
from wait_registry.records.headers import decode_headers_json

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
    place, registration, why = (row["wait_partition"], row["wait_offset"]), None, ""
    try:
        registration = _registration(row)
    except DataError as error:
        why = str(error)
    return WaitRow(row["wait_expiration_uuid"], place, registration, why)


def dead_letter_row(row: Columns) -> DeadLetterRow:
    """Read a row of ``dead_letter``."""
    content, unreadable = None, ""
    try:
        content = _content(row["key"], row["body"], row["headers_json"])
    except DataError as error:
        unreadable = str(error)
    registered = row["wait_partition"] is not None and row["wait_offset"] is not None
    # The same rows are read again every two seconds of a run, and kept.
    texts: dict[str, str | None] = {
        name: row[name] and sys.intern(row[name]) for name in ("error_class", "error_message", "error_stacktrace")
    }
    return DeadLetterRow(
        place=(row["topic"], row["partition"], row["offset"]),
        content=content,
        time_ms=_ms(row["dead_letter_time"]),
        wait_id=row["wait_expiration_uuid"],
        original=_place(row, "original"),
        timestamp_ms=row["original_timestamp_ms"],
        timestamp_type=row["original_timestamp_type"],
        registration=(row["wait_partition"], row["wait_offset"]) if registered else None,
        group=row["consumer_group"],
        unreadable=unreadable,
        reason=row["reason"],
        instance=row["instance"],
        delivery=row["delivery"],
        finished_late=row["finished_late"],
        **texts,
    )


# Columns of ``wait`` that are fields of a registration.
_FIELDS = {
    "timestamp_ms": "original_timestamp_ms",
    "timestamp_type": "original_timestamp_type",
    "group": "consumer_group",
    **{name: name for name in ("instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries")},
}


def _registration(row: Columns) -> Registration:
    for column in ("original_partition", "original_offset", "wait_expiration_time", *_FIELDS.values()):
        if row[column] is None:
            raise DataError(f"column {column} is null")
    original, expires_at_ms = _place(row, "original"), _ms(row["wait_expiration_time"])
    assert original is not None and expires_at_ms is not None
    return Registration(
        original=original,
        content=_content(row["original_key"], row["body"], row["headers"]),
        wait_id=row["wait_expiration_uuid"],
        expires_at_ms=expires_at_ms,
        source=_place(row, "source"),
        **{field: row[column] for field, column in _FIELDS.items()},
    )


def _content(key: bytes | None, body: bytes | None, headers_json: str | None) -> Fingerprint:
    return fingerprint(key, body, decode_headers_json((headers_json or "").encode()))


def _place(row: Columns, prefix: str) -> tuple[str, int, int] | None:
    topic, partition, offset = (row[f"{prefix}_{part}"] for part in ("topic", "partition", "offset"))
    return None if topic is None or partition is None or offset is None else (topic, partition, offset)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)


ANSWER_S = 5.0


class Views(Companion):
    """Looks in a thread of its own; a context manager.

    ``taken`` has one snapshot for each look that Postgres answered, ``asked`` counts those too that it didn't.

    Args:
        postgres_url: where, not by way of a faulty link.
        schema: the schema with the tables.
        interval_s: from the end of a look to the beginning of the next one, s.
    """

    def __init__(self, postgres_url: str, schema: str, interval_s: float = 2.0) -> None:
        self.taken: list[View] = []
        self.asked = 0
        self._postgres_url = postgres_url
        self._schema = schema
        super().__init__("views", interval_s, self._look)

    def _look(self) -> None:
        began_ms = _now_ms()
        self.asked += 1
        # Away, or ended our session: that is part of the game.
        with suppress(psycopg.Error):
            tables = read_tables(self._postgres_url, self._schema, ANSWER_S)
            self.taken.append(View(began_ms, _now_ms(), tables))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
