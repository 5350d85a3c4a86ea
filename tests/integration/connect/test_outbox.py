"""The outbox for Connect sources: due rows come into it once they have settled, once only, whoever fills it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from tests.integration.connect.outbox import DEAD_LETTER, EXPORTED, POSITION, Connection, fill, places, register
from tests.support.connect_connectors import our_connector
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

# The sink's own statement, as far as the time of a row is concerned: an existing row is changed, not inserted.
STANDING_FOR = "update wait set created_at = now() - %s where wait_expiration_uuid = %s"
SETTLE_S = 60
EXPIRED_S = -600


def test_a_due_registration_is_copied_once_and_whole(outbox: Connection) -> None:
    outbox.execute(
        """
        insert into wait (wait_expiration_uuid, original_topic, original_partition, original_offset, original_key,
            original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body,
            consumer_group, instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, wait_topic,
            wait_partition, wait_offset)
        values ('whole', 'orders', 3, 77, '\\x00ff', -1, 'none', '[["a", null], ["a", ""]]', now() - interval '1 h',
            convert_to(repeat('body', 100000), 'UTF8'), 'group', 'host', 2, 'dlq', 'redeliver', 9, 'wait', 1, 5)
        """
    )
    register(outbox, "later", 0, 8, expires_in_s=3600)
    register(outbox, "within the skew allowance", 0, 9, expires_in_s=-1)
    register(outbox, "with little", 0, 7)
    assert [fill(outbox), fill(outbox)] == [2, 0]
    alike = outbox.execute(
        """
        select wait_expiration_uuid, to_jsonb(wait) @> to_jsonb(outbox) - 'id' - 'created_at'
        from wait join expired_outbox as outbox using (wait_expiration_uuid) order by outbox.id
        """
    ).fetchall()
    assert alike == [("whole", True), ("with little", True)]


def test_a_newer_registration_of_an_id_is_another_one(outbox: Connection) -> None:
    register(outbox, "again", 2, 10)
    assert fill(outbox) == 1
    outbox.execute("update wait set wait_offset = 20 where wait_expiration_uuid = 'again'")
    assert [fill(outbox), fill(outbox)] == [1, 0]
    assert places(outbox) == [("again", 2, 10), ("again", 2, 20)]


def test_the_offsets_of_a_recreated_topic_hide_nothing(outbox: Connection) -> None:
    register(outbox, "old", 0, 0)
    assert fill(outbox) == 1
    outbox.execute("delete from wait")
    register(outbox, "new", 0, 0)
    assert fill(outbox) == 1


def test_a_row_that_comes_back_is_not_exported_again(outbox: Connection) -> None:
    register(outbox, "replayed", 0, 3)
    assert fill(outbox) == 1
    outbox.execute("delete from wait")
    assert fill(outbox) == 0
    register(outbox, "replayed", 0, 3)
    assert fill(outbox) == 0


def test_the_oldest_of_all_partitions_come_first_up_to_the_limit(outbox: Connection) -> None:
    for number in range(12):
        register(outbox, f"w{number}", number % 3, number, expires_in_s=-600 + number)
    assert [fill(outbox, 5) for _ in range(4)] == [5, 5, 2, 0]
    assert places(outbox) == [(f"w{number}", number % 3, number) for number in range(12)]


def test_large_rows_come_in_small_batches_and_the_largest_alone(outbox: Connection) -> None:
    for number, size in enumerate((1_000, 3_000, 1_000, 50_000, 1_000)):
        register(outbox, f"w{number}", number % 2, number, expires_in_s=-600 + number)
        outbox.execute("update wait set body = %s where wait_offset = %s", (bytes(size), number))
    assert [fill(outbox, max_bytes=4_000) for _ in range(4)] == [2, 2, 1, 0]
    assert [wait_id for wait_id, _, _ in places(outbox)] == [f"w{number}" for number in range(5)]


@pytest.mark.guarantee("P3.18", "C.6")
def test_with_our_sink_a_row_waits_until_its_position_passes_the_expiry(outbox: Connection) -> None:
    for partition in range(3):
        register(outbox, f"w{partition}", partition, 1, expires_in_s=-60)
    # Positions 56 s and 54 s ago: before and after expiry and skew allowance. Partition 2 has none.
    outbox.execute(POSITION, (0, timedelta(seconds=-56)))
    outbox.execute(POSITION, (1, timedelta(seconds=-54)))
    assert [fill(outbox), fill(outbox)] == [1, 0]
    assert places(outbox) == [("w1", 1, 1)]
    outbox.execute("update sink_progress set position_time = now()")
    outbox.execute(POSITION, (2, timedelta()))
    assert fill(outbox) == 2
    # The position of another topic doesn't matter.
    outbox.execute("update sink_progress set topic = 'another', position_time = '-infinity'")
    register(outbox, "ungated", 0, 2)
    assert fill(outbox) == 1


@pytest.mark.parametrize("reading", ["wait", "dlq"])
def test_no_row_is_due_during_the_first_reading_of_a_topic(outbox: Connection, reading: str) -> None:
    for partition in range(2):
        register(outbox, f"w{partition}", partition, 1)
        outbox.execute(POSITION, (partition, timedelta()))
    outbox.execute("insert into sink_progress values (%s, 'id', 2, 9, now(), now(), 10)", (reading,))
    assert fill(outbox) == 0
    outbox.execute("update sink_progress set next_offset = 10 where read_until = 10")
    assert fill(outbox) == 2


@pytest.mark.guarantee("P1.15", "C.1")
def test_a_tombstone_follows_the_dead_letter_of_its_registration(outbox: Connection) -> None:
    for number, wait_id in enumerate(("exported", "failed", "registered again", "not yet")):
        register(outbox, wait_id, 0, number)
    assert fill(outbox) == 4
    assert places(outbox, "expired_tombstone") == []
    outbox.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
    outbox.execute(DEAD_LETTER, (1, "failed", "failed", 0, 1))
    outbox.execute(DEAD_LETTER, (2, "expired", "registered again", 0, 2))
    outbox.execute("update wait set wait_offset = 9 where wait_expiration_uuid = 'registered again'")
    assert [fill(outbox), fill(outbox)] == [1, 0]
    assert places(outbox, "expired_tombstone") == [("exported", 0, 0)]


@pytest.mark.guarantee("P4.15")
def test_a_row_exported_before_a_restore_only_gets_its_tombstone(outbox: Connection) -> None:
    register(outbox, "exported", 0, 0)
    outbox.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
    assert fill(outbox) == 0
    assert places(outbox, "expired_tombstone") == [("exported", 0, 0)]


def test_the_open_views_omit_exported_and_resolved_rows(outbox: Connection) -> None:
    for number, wait_id in enumerate(("open", "in the log", "resolved", "registered again")):
        register(outbox, wait_id, 0, number)
    fill(outbox)
    outbox.execute(DEAD_LETTER, (0, "expired", "in the log", 0, 1))
    outbox.execute("delete from wait where wait_expiration_uuid = 'resolved'")
    outbox.execute("update wait set wait_offset = 9 where wait_expiration_uuid = 'registered again'")
    assert places(outbox, "expired_outbox_open") == [("open", 0, 0)]
    fill(outbox)
    assert places(outbox, "expired_tombstone_open") == [("in the log", 0, 1)]
    outbox.execute("delete from wait")
    assert places(outbox, "expired_tombstone_open") == []


def test_rows_finished_a_week_ago_are_deleted_and_open_ones_kept(outbox: Connection) -> None:
    for number, wait_id in enumerate(("old and finished", "old and open", "finished of late")):
        register(outbox, wait_id, 0, number)
    fill(outbox)
    outbox.execute(EXPORTED)
    fill(outbox)
    for table in ("expired_outbox", "expired_tombstone"):
        assert len(places(outbox, table)) == 3
        old = f"update {table} set created_at = now() - interval '8 days' where wait_expiration_uuid like 'old%'"
        outbox.execute(old.encode())
    outbox.execute("delete from wait where wait_expiration_uuid <> 'old and open'")
    fill(outbox)
    for table in ("expired_outbox", "expired_tombstone"):
        assert [wait_id for wait_id, _, _ in places(outbox, table)] == ["old and open", "finished of late"]


def test_a_row_with_an_unsendable_header_name_blocks_no_other(outbox: Connection) -> None:
    for number, headers in enumerate(['[[{"base64":"7aCA"},"MQ=="]]', '[["a",null],[{"base64":"YQA="},null]]', "[]"]):
        register(outbox, f"id-{number}", 0, number)
        outbox.execute("update wait set original_headers = %s where wait_offset = %s", (headers, number))
    register(outbox, "id-3", 0, 3)
    assert fill(outbox) == 2
    assert [wait_id for wait_id, *_ in places(outbox)] == ["id-2", "id-3"]


def test_a_fill_of_no_bytes_only_closes_what_is_exported(outbox: Connection) -> None:
    for number, wait_id in enumerate(("exported", "not yet read back", "due since")):
        register(outbox, wait_id, 0, number)
        if number < 2:
            assert fill(outbox) == 1
    outbox.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
    assert fill(outbox, max_bytes=0) == 0
    assert places(outbox, "expired_tombstone") == [("exported", 0, 0)]
    assert len(places(outbox)) == 2


@pytest.mark.guarantee("P3.19", "C.3")
def test_a_row_that_a_replay_shows_for_a_moment_is_not_exported(outbox: Connection) -> None:
    register(outbox, "replayed", 0, 1, EXPIRED_S)
    register(outbox, "standing", 0, 2, EXPIRED_S)
    outbox.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S + 5), "standing"))
    assert fill(outbox, settle_s=SETTLE_S) == 1
    # Its tombstone, which the sink reads later.
    outbox.execute("delete from wait where wait_expiration_uuid = 'replayed'")
    assert fill(outbox, settle_s=SETTLE_S) == 0
    assert places(outbox) == [("standing", 0, 2)]


def test_a_sink_that_is_behind_by_less_exports_no_finished_row(outbox: Connection) -> None:
    # The allowance for skew is five seconds.
    register(outbox, "expired a while ago", 0, 1, -SETTLE_S - 10)
    register(outbox, "its tombstone may be on its way", 0, 2, -SETTLE_S)
    outbox.execute("update wait set created_at = now() - interval '1 hour'")
    assert fill(outbox, settle_s=SETTLE_S) == 1
    assert places(outbox) == [("expired a while ago", 0, 1)]


def test_with_the_position_of_our_sink_no_row_has_to_settle(outbox: Connection) -> None:
    register(outbox, "seen to its expiry", 0, 1)
    register(outbox, "of a partition without a position", 1, 1, EXPIRED_S)
    outbox.execute(STANDING_FOR, (timedelta(days=1), "of a partition without a position"))
    outbox.execute(POSITION, (0, timedelta()))
    assert fill(outbox, settle_s=SETTLE_S) == 1
    assert places(outbox) == [("seen to its expiry", 0, 1)]


def test_a_tombstone_needs_no_settled_row(outbox: Connection) -> None:
    register(outbox, "exported", 0, 1)
    outbox.execute(DEAD_LETTER, (0, "expired", "exported", 0, 1))
    assert fill(outbox, settle_s=SETTLE_S) == 0
    assert places(outbox, "expired_tombstone") == [("exported", 0, 1)]


WAITS_FOR_US = "select pg_backend_pid() = any(pg_blocking_pids(%s))"


def test_a_jdbc_source_fills_the_outbox_even_without_rows(outbox_settings: Settings, outbox: Connection) -> None:
    register(outbox, "first", 0, 0)
    waits = outbox_settings.model_copy(update={"wait": outbox_settings.wait.model_copy(update={"topic": "wait"})})
    found = our_connector("expired.source.jdbc.json", waits)
    query = f'{found.config["query"]} WHERE "id" > %s ORDER BY "id" ASC'.encode()
    assert outbox.execute(query, (-1,)).fetchall() == []
    assert places(outbox) == [("first", 0, 0)]
    assert len(outbox.execute(query, (-1,)).fetchall()) == 1
    assert outbox.execute(query, (10,)).fetchall() == []


@pytest.mark.guarantee("P4.14")
def test_numbers_of_two_fillers_are_in_order(outbox_settings: Settings, database: Database, outbox: Connection) -> None:
    for number in range(4):
        register(outbox, f"w{number}", 0, number, expires_in_s=-600 + number)
    with database.connect(outbox_settings) as second, ThreadPoolExecutor(1) as pool:
        with outbox.transaction():
            assert fill(outbox, 2) == 2
            waiting = pool.submit(fill, second, 1)
            wait_until(lambda: _waits_for(outbox, second), 30, "the second filler to wait for the first")
            with database.connect(outbox_settings) as reader:
                assert places(reader) == []
        assert waiting.result(30) == 1
    assert [wait_id for wait_id, _, _ in places(outbox)] == ["w0", "w1", "w2"]


def test_the_lock_of_a_filler_times_out_before_its_connection(
    outbox_settings: Settings, database: Database, outbox: Connection
) -> None:
    (shipped,) = outbox.execute("select proconfig from pg_proc where oid = 'fill_expired_outbox'::regproc").fetchall()
    assert "lock_timeout=30s" in shipped[0]
    for family, property_name in (("debezium", "driver.socketTimeout"), ("jdbc", "connection.url")):
        found = our_connector(f"expired.source.{family}.json", outbox_settings).config
        assert int(found[property_name].rpartition("socketTimeout=")[2].partition("&")[0]) > 30
    outbox.execute("alter function fill_expired_outbox set lock_timeout = '100ms'")
    with database.connect(outbox_settings) as second, outbox.transaction():
        fill(outbox)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            fill(second)


def _waits_for(holder: Connection, waiting: Connection) -> bool:
    row = holder.execute(WAITS_FOR_US, (waiting.info.backend_pid,)).fetchone()
    return row is not None and bool(row[0])
