"""What is expired goes out as it came in, once, from one snapshot; what isn't, stays (P3, P4, P5)."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest

from sweeper.due import MAX_ROW_JSON_BYTES
from sweeper.export import fence
from sweeper.result import RowOutcome, Skip
from sweeper.snapshot import PartitionSnapshot
from tests.conftest import SettingsFactory
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario, export_all, ids, with_server_default
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.records.dead_letter import Reason, decode_dead_letter
from wait_registry.records.headers import MAX_JSON_BYTES, Headers, decode_headers_json, encode_headers_json
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, decode_outcome

ODD_RECORDS: tuple[dict[str, Any], ...] = (
    {"key": None, "value": b"null key"},
    {"key": b"", "value": b""},
    {"key": b"null value", "value": None},
    {
        "key": b"\x00\xff",
        "value": bytes(range(256)),
        "headers": (("a", b"1"), ("b", None), ("a", b""), ("", b"\x00\xff")),
    },
    {"value": b"x" * 100_000, "headers": (("WAIT_LINEAGE", b"1"), ("ORIGINAL_TOPIC", b"not mine"))},
)


@pytest.mark.guarantee("P5.5")
def test_an_expired_record_comes_out_as_it_went_in(at: Scenario) -> None:
    registered = at.due([at.wait_record(number, **odd) for number, odd in enumerate(ODD_RECORDS)])
    before_ms = time.time_ns() // 1_000_000
    assert at.sweep().counts[RowOutcome.EXPORTED] == len(ODD_RECORDS)
    letters = {record.text("WAIT_EXPIRATION_UUID"): record for record in at.dead_letters()}
    assert len(letters) == len(ODD_RECORDS)
    for item in registered:
        letter, original = letters[item.wait_id], item.record.original
        assert isinstance(original, Original)
        decoded = decode_dead_letter(letter.headers)
        assert (letter.key, letter.value, decoded.headers) == (original.key, original.value, original.headers)
        assert letter.timestamp_ms >= before_ms, "retention counts from the time of dead-lettering"
        assert decoded.failure is not None
        assert decoded.failure.reason is Reason.EXPIRED
        lineage = decoded.lineage
        assert lineage is not None
        assert (lineage.original_topic, lineage.original_partition, lineage.original_offset) == original[:3]
        assert (lineage.original_timestamp_ms, lineage.original_timestamp_type) == original[3:5]
        assert (lineage.wait_partition, lineage.wait_offset) == (item.partition, item.offset)
        assert (lineage.group, lineage.instance, lineage.delivery) == (at.settings.processor.group, "host-1", 1)


@pytest.mark.guarantee("P4.5")
def test_the_tombstone_goes_to_the_partition_of_its_wait_record(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.partitions": 3})
    registered = at.register([at.wait_record(number) for number in range(20)], partition=2)
    at.show(partition=2)
    assert at.sweep(partition=2).counts[RowOutcome.EXPORTED] == 20
    tombstones = [record for record in at.read_wait() if record.value is None]
    assert sorted(record.key.decode() for record in tombstones if record.key) == ids(registered)
    assert {record.partition for record in tombstones} == {2}
    assert {decode_outcome(record.headers) for record in tombstones} == {Outcome.EXPIRED}


@pytest.mark.guarantee("P3.12")
def test_only_what_is_due_is_exported(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.skew_allowance_s": 30})
    due, _within_skew, _later = at.due(
        [at.wait_record(1), at.wait_record(2, expires_in_ms=-10_000), at.wait_record(3, expires_in_ms=600_000)]
    )
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [due.wait_id]


@pytest.mark.guarantee("P3.1", "C.3")
def test_rows_resolved_in_the_tail_are_not_exported(at: Scenario) -> None:
    """The tables show forty registrations, the log says that half of them are settled."""
    registered = at.register([at.wait_record(number) for number in range(40)])
    position = at.end()
    at.resolve(registered[::2])
    at.show(up_to=position)
    result = at.sweep(chunk_rows=7)
    assert (result.counts, result.skip) == ({"exported": 20, "superseded": 20}, None)
    assert at.dead_lettered_ids() == ids(registered[1::2])


@pytest.mark.guarantee("P3.2")
def test_a_tombstone_between_tail_and_export_is_honored(at: Scenario) -> None:
    first, second = at.due(2)
    with at.export() as task:
        rows = fence(task).snapshot().read_tail()
        at.resolve([first])
        assert export_all(rows.chunks()) == {"exported": 1, "superseded": 1}
    assert at.dead_lettered_ids() == [second.wait_id]


@pytest.mark.guarantee("P3.3")
def test_a_newer_registration_of_the_id_counts_by_its_own_expiry(at: Scenario) -> None:
    old = at.wait_record(1)
    at.register([old])
    position = at.end()
    renewed = at.wait_record(1, expires_in_ms=600_000, wait_id=old.wait_id)
    at.register([renewed])
    at.show(up_to=position)
    assert at.sweep().counts[RowOutcome.SUPERSEDED] == 1
    at.show()
    assert at.sweep().counts[RowOutcome.EXPORTED] == 0
    assert at.dead_lettered_ids() == []


def test_a_registration_after_its_ids_tombstone_is_exported_once(at: Scenario) -> None:
    """Registered, resolved, registered again (a crash between publish and commit), expired."""
    (first,) = at.register([at.wait_record(1)])
    position = at.end()
    at.resolve([first])
    (again,) = at.register([first.record])
    at.show(up_to=position)
    assert at.sweep().counts == {"superseded": 1}, "the row shown is resolved; the newer one is the sink's to bring"
    at.show()
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.sweep().counts[RowOutcome.SUPERSEDED] == 1, "the sink has not shown the tombstone yet"
    at.show()
    assert at.dead_lettered_ids() == [again.wait_id]
    assert at.dead_letters()[0].text("WAIT_OFFSET") == str(again.offset)


@pytest.mark.guarantee("P3.10")
def test_a_position_that_compaction_may_have_overtaken_is_refused(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.delete_retention_ms": 86_400_000})
    (registered,) = at.register([at.wait_record(1)])
    position = at.end()
    at.register([at.wait_record(2, expires_in_ms=600_000)])
    at.show(up_to=position, age_s=43_200 + 60)
    refused = at.sweep()
    assert (refused.counts, refused.skip) == ({}, Skip.POSITION_TOO_OLD)
    assert "waitreg rebuild" in refused.reason
    assert at.dead_lettered_ids() == []
    at.show(up_to=position, age_s=43_200 - 600)
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [registered.wait_id]


@pytest.mark.guarantee("P7.10", "C.7")
def test_a_tail_beyond_the_limit_leaves_the_partition(at: Scenario) -> None:
    at.register([at.wait_record(1)])
    position = at.end()
    at.register([at.wait_record(number, expires_in_ms=600_000) for number in range(2, 30)])
    at.show(up_to=position)
    assert at.sweep(max_tail_records=27).skip is Skip.TAIL_TOO_LONG
    assert at.dead_lettered_ids() == []
    assert at.sweep(max_tail_records=28).counts[RowOutcome.EXPORTED] == 1


def test_own_tombstones_do_not_fill_the_tail(at: Scenario) -> None:
    at.due(30)
    assert at.sweep(chunk_rows=3, max_tail_records=1).counts[RowOutcome.EXPORTED] == 30


def test_chunks_are_bounded_in_bytes(at: Scenario) -> None:
    at.due([at.wait_record(number, value=b"x" * 700) for number in range(5)])
    start = at.end()
    assert at.sweep(chunk_bytes=1_500).counts[RowOutcome.EXPORTED] == 5
    # A commit is answered before its marker is written.
    wait_until(lambda: at.end() - start >= 5 + 3, 60, "five tombstones and a marker for each of three transactions")
    assert at.end() - start == 5 + 3


@pytest.mark.guarantee("P8.12")
@pytest.mark.parametrize(
    ("change", "skip", "reason"),
    [
        ("topic_id = 'another'", Skip.TOPIC_CHANGED, "recreated"),
        ("next_offset = next_offset + 1", Skip.UNAVAILABLE, "waitreg rebuild"),
    ],
)
def test_tables_of_another_or_a_longer_log_export_nothing(at: Scenario, change: str, skip: Skip, reason: str) -> None:
    at.due()
    at.database.execute(at.settings, f"update sink_progress set {change}")
    result = at.sweep()
    assert (result.skip, result.counts) == (skip, {})
    assert reason in result.reason


@pytest.mark.guarantee("P3.9")
def test_rows_are_read_as_they_were_judged(at: Scenario) -> None:
    """The sink brings a newer registration between a row's judgment and its reading: the row judged is the one read."""
    old = at.wait_record(1)
    (registered,) = at.register([old])
    position = at.show()
    with closing(PartitionSnapshot(at.settings, 0)) as tables:
        keys = tables.next_keys(10, 1_000_000)
        at.register([at.wait_record(1, expires_in_ms=600_000, wait_id=old.wait_id, delivery=2)])
        at.show()
        ((row,), unreadable) = tables.rows(keys)
    assert unreadable == []
    assert tables.progress is not None
    assert tables.progress.next_offset == position
    assert [(key.wait_id, key.wait_offset) for key in keys] == [(old.wait_id, registered.offset)]
    assert (row.wait_offset, row.record.delivery) == (registered.offset, 1)
    assert row.record.expires_at_ms == old.expires_at_ms


def test_the_snapshot_outlasts_the_servers_time_limits(at: Scenario) -> None:
    at.due()
    limited = with_server_default(at.settings, "idle_in_transaction_session_timeout=60000")
    shown: Any = {"limit": "select current_setting('idle_in_transaction_session_timeout')"}
    with closing(PartitionSnapshot(limited, 0)) as tables:
        assert tables.ask(shown, "limit") == [("0",)]


REPEATED = 2_000


@pytest.mark.parametrize(
    "header", [("", None), ("", b""), ("\0", None), ("\x01", b""), ('"', None), ("\u20ac", b"\xff"), ("\ud800", None)]
)
def test_any_header_takes_less_than_twice_its_room(
    header: tuple[str, bytes | None], prepared: SettingsFactory, database: Database
) -> None:
    headers: Headers = (header,) * REPEATED
    registered = encode_headers_json(headers)
    [(printed,)] = database.rows(prepared(), "select %s::jsonb::text", registered.decode())
    assert len(printed.encode()) / len(registered) <= MAX_ROW_JSON_BYTES / MAX_JSON_BYTES
    assert decode_headers_json(printed.encode(), MAX_ROW_JSON_BYTES) == headers
