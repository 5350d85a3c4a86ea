"""What is expired goes out as it came in, once, together with its tombstone; what isn't, stays (P3, P4, P5)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sweeper.export import fence
from sweeper.result import RowOutcome, Skip
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import export_all
from tests.support.waiting import wait_until
from wait_registry.records.dead_letter import Reason, decode_dead_letter
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
def test_an_expired_record_comes_out_as_it_went_in(scenario: ScenarioFactory) -> None:
    at = scenario()
    registered = at.register([at.wait_record(number, **odd) for number, odd in enumerate(ODD_RECORDS)])
    at.show()
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
    assert sorted(record.key.decode() for record in tombstones if record.key) == sorted(r.wait_id for r in registered)
    assert {record.partition for record in tombstones} == {2}
    assert {decode_outcome(record.headers) for record in tombstones} == {Outcome.EXPIRED}


@pytest.mark.guarantee("P3.12")
def test_only_what_is_due_is_exported(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.skew_allowance_s": 30})
    due, _within_skew, _later = at.register(
        [at.wait_record(1), at.wait_record(2, expires_in_ms=-10_000), at.wait_record(3, expires_in_ms=600_000)]
    )
    at.show()

    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [due.wait_id]


@pytest.mark.guarantee("P3.1", "C.3")
def test_what_was_resolved_behind_the_sinks_back_is_not_exported(scenario: ScenarioFactory) -> None:
    """P3: the view shows forty registrations, the log says that half of them are finished."""
    at = scenario()
    registered = at.register([at.wait_record(number) for number in range(40)])
    position = at.end()
    at.resolve(registered[::2])
    at.show(up_to=position)

    result = at.sweep(chunk_rows=7)

    assert (result.counts[RowOutcome.EXPORTED], result.counts[RowOutcome.SUPERSEDED], result.skip) == (20, 20, None)
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered[1::2])


@pytest.mark.guarantee("P3.2")
def test_a_tombstone_that_comes_between_tail_and_export_is_honoured(scenario: ScenarioFactory) -> None:
    at = scenario()
    first, second = at.register([at.wait_record(1), at.wait_record(2)])
    at.show()
    with at.export() as task:
        rows = fence(task).snapshot().read_tail()
        at.resolve([first])
        assert export_all(rows.chunks()) == {"exported": 1, "superseded": 1}

    assert at.dead_lettered_ids() == [second.wait_id]


@pytest.mark.guarantee("P3.3")
def test_a_newer_registration_of_the_id_counts_by_its_own_expiry(scenario: ScenarioFactory) -> None:
    at = scenario()
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


def test_a_registration_after_its_ids_tombstone_is_exported_once(scenario: ScenarioFactory) -> None:
    """Registered, resolved, registered again (a crash between publish and commit), expired."""
    at = scenario()
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


def test_transaction_markers_at_the_logs_end_are_no_obstacle(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    position = at.show()
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    at.register([at.wait_record(2)])
    at.show()
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.end() == position + 5, "tombstone, marker, wait record, tombstone, marker"
    assert at.sweep(tail_timeout_s=20).counts[RowOutcome.SUPERSEDED] == 1
    assert len(at.dead_letters()) == 2


@pytest.mark.guarantee("P3.10")
def test_a_position_that_compaction_may_have_overtaken_is_refused(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.delete_retention_ms": 86_400_000})
    (registered,) = at.register([at.wait_record(1)])
    position = at.end()
    at.register([at.wait_record(2, expires_in_ms=600_000)])

    at.show(up_to=position, age_s=43_200 + 60)
    refused = at.sweep()
    assert (refused.counts[RowOutcome.EXPORTED], refused.skip) == (0, Skip.POSITION_TOO_OLD)
    assert "waitreg rebuild" in refused.reason
    assert at.dead_lettered_ids() == []

    at.show(up_to=position, age_s=43_200 - 600)
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [registered.wait_id]


def test_a_position_at_the_logs_end_is_never_too_old(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.delete_retention_ms": 86_400_000})
    at.register([at.wait_record(1)])
    at.show(age_s=30 * 86_400)

    assert at.sweep().counts[RowOutcome.EXPORTED] == 1


@pytest.mark.guarantee("P7.10", "C.7")
def test_a_tail_beyond_the_limit_leaves_the_partition(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    position = at.end()
    at.register([at.wait_record(number, expires_in_ms=600_000) for number in range(2, 30)])
    at.show(up_to=position)

    assert at.sweep(max_tail_records=27).skip is Skip.TAIL_TOO_LONG
    assert at.dead_lettered_ids() == []
    assert at.sweep(max_tail_records=28).counts[RowOutcome.EXPORTED] == 1


def test_own_tombstones_do_not_fill_the_tail(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(number) for number in range(30)])
    at.show()

    assert at.sweep(chunk_rows=3, max_tail_records=1).counts[RowOutcome.EXPORTED] == 30


def test_chunks_are_bounded_in_bytes(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(number, value=b"x" * 700) for number in range(5)])
    at.show()
    start = at.end()

    assert at.sweep(chunk_bytes=1_500).counts[RowOutcome.EXPORTED] == 5
    # A commit is answered before its marker is written.
    wait_until(lambda: at.end() - start >= 5 + 3, 60, "five tombstones and a marker for each of three transactions")
    assert at.end() - start == 5 + 3


@pytest.mark.guarantee("P8.12")
def test_a_view_of_another_topic_of_the_name_exports_nothing(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    with at.database.connect(at.settings) as connection:
        connection.execute("update sink_progress set topic_id = 'another'")

    result = at.sweep()
    assert (result.skip, result.counts[RowOutcome.EXPORTED]) == (Skip.TOPIC_CHANGED, 0)


def test_a_view_beyond_the_logs_end_exports_nothing(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    end = at.show()
    with at.database.connect(at.settings) as connection:
        connection.execute("update sink_progress set next_offset = %s", (end + 1,))

    result = at.sweep()
    assert (result.skip, result.counts[RowOutcome.EXPORTED]) == (Skip.UNAVAILABLE, 0)
    assert "waitreg rebuild" in result.reason
