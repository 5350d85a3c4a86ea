"""P1, P7, P8: records that can't be decoded are kept whole in the table quarantine, and every other one is a row."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import SettingsFactory
from tests.fuzz.inputs import corpus_of
from tests.fuzz.sink_batch import rows_of
from tests.fuzz.targets import TARGETS
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.errors import DataError
from wait_registry.records.dead_letter import decode_dead_letter
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.wait_record import WaitRecord, decode_wait_record

MAX_INT64 = 2**63 - 1


@pytest.mark.guarantee("P1.12")
@pytest.mark.parametrize(("time_ms", "year"), [(2**62, 9999), (-(2**62), 1), (MAX_INT64, 9999), (-MAX_INT64 - 1, 1)])
def test_no_records_time_stops_the_sink(prepared: SettingsFactory, database: Database, time_ms: int, year: int) -> None:
    settings = prepared()
    key = new_id().encode()
    unreadable = Row(b"no wait ID", b"body", 0, 1, time_ms)
    tombstones = [Row(key, None, 0, offset, time_ms) for offset in (2, 3)]
    with closing(HandFed(settings)) as sink:
        sink.feed([unreadable, *tombstones])
    with closing(HandFed(settings, "dlq", dead_letters=True)) as letters:
        letters.feed([Row(b"k", b"body", 0, 1, time_ms, topic="dlq")])
    year_of = "extract(year from {} at time zone 'utc')::int"
    quarantine = f'select "offset", {year_of.format("record_time")} from quarantine'
    late = f"select wait_offset, {year_of.format('outcome_time')} from late_outcome order by 1"
    assert database.rows(settings, quarantine) == [(1, year)]
    assert database.rows(settings, late) == [(2, year), (3, year)]
    assert database.rows(settings, 'select "offset" from dead_letter') == [(1,)]


def records(target: str) -> list[Row]:
    """Return a target's inputs as records of one partition."""
    inputs = sorted({*TARGETS[target].seeds(), *corpus_of(target)})
    return [replace(row, value=row.value or b"", time_ms=now_ms()) for row in rows_of(inputs)]


def keyed(row: Row) -> Row:
    """Give a wait record an id that no other has, where its headers name none."""
    wait_id = f"00000000-0000-8000-8000-{row.offset:012d}".encode()
    own = tuple((name, wait_id if name == "WAIT_EXPIRATION_UUID" else value) for name, value in row.headers or ())
    return replace(row, key=wait_id, headers=own)


def decoded(row: Row) -> WaitRecord | None:
    try:
        return decode_wait_record(row.key, row.value, row.headers)
    except DataError:
        return None


@pytest.mark.guarantee("P1.12")
@pytest.mark.fault("F63")
def test_every_record_of_the_corpus_is_a_row_or_quarantined(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared()
    given = [keyed(row) for row in records("wait_record")]
    with closing(HandFed(settings)) as sink:
        sink.feed(given)
    read = {row.offset: record for row in given if (record := decoded(row))}
    columns = (
        "wait_offset, wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, body, "
        "original_timestamp_ms, consumer_group, instance, delivery, dead_letter_topic, max_deliveries, traceparent, "
        "(extract(epoch from wait_expiration_time) * 1000)::bigint, original_headers::text"
    )
    shown = database.rows(settings, f"select {columns} from wait order by wait_offset")
    assert [row[:-1] for row in shown] == [expected(offset, record) for offset, record in sorted(read.items())]
    for offset, *_, headers in shown:
        assert decode_headers_json(headers.encode()) == read[offset].original.headers
    kept = database.rows(settings, 'select "offset", key, body, headers::text from quarantine order by 1')
    assert [offset for offset, *_ in kept] == sorted({row.offset for row in given} - read.keys())
    for offset, key, body, headers in kept:
        whole = (given[offset].key, given[offset].value, given[offset].headers)
        assert (key, body, decode_headers_json(headers.encode())) == whole


def expected(offset: int, record: WaitRecord) -> tuple[Any, ...]:
    original = record.original
    return (
        *(offset, record.wait_id, original.topic, original.partition, original.offset, original.key, original.value),
        *(original.timestamp_ms, record.group, record.instance, record.delivery, record.dead_letter_topic),
        *(record.max_deliveries, record.traceparent, record.expires_at_ms),
    )


def test_every_record_of_a_dead_letter_topic_is_a_row(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared()
    given = records("dead_letter")
    with closing(HandFed(settings, dead_letters=True)) as sink:
        sink.feed(given)
    shown = database.rows(settings, 'select "offset", reason, error_message, headers::text from dead_letter order by 1')
    assert len(shown) == len(given)
    for row, (_, reason, message, headers) in zip(given, shown, strict=True):
        letter = decode_dead_letter(row.headers)
        assert decode_headers_json(json.dumps(json.loads(str(headers))).encode()) == letter.headers
        assert reason == (letter.failure and letter.failure.reason.value)
        assert message == (letter.failure and letter.failure.error_message)
